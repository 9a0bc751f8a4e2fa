//! A message as a reader gets it. Decoding a row lives here and only here.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio_postgres::Row;

use crate::error::{Error, Result};
use crate::payload;
use crate::wire::{Interval, RawJson};

/// Names a message within its queue; kept through every retry and redrive.
pub type MessageId = i64;

/// The right to settle one delivery of a message.
///
/// It is good until the message is settled or delivered again, also past the visibility timeout when nobody else
/// was given the message. SQS calls it a receipt handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The message.
    pub id: MessageId,
    /// The number of the delivery, 1 for the first; it only ever rises.
    pub read_ct: i32,
}

/// One delivery of a message.
///
/// `Debug` shows how long headers and body are, and not what is in them: it ends up in logs.
#[derive(Clone)]
#[non_exhaustive]
pub struct Message {
    /// The right to settle this delivery.
    pub lease: Lease,
    /// The run in hand, 1 for the first. Deliveries that were given back do not count.
    pub attempt: i32,
    /// When the message was due: its place in the line.
    pub ready_at: DateTime<Utc>,
    /// When it was first sent; survives retries and redrives.
    pub enqueued_at: DateTime<Utc>,
    /// When it was delivered last: for a message that was read, this delivery.
    pub last_read_at: Option<DateTime<Utc>>,
    /// From this instant on another reader may get it. The database's clock.
    pub visible_at: DateTime<Utc>,
    /// Its level in the queue.
    pub priority: i16,
    /// How long this run may take; `None`: no limit.
    pub timeout: Option<Duration>,
    /// The delivery before left no outcome: this message may be what killed its worker.
    pub is_suspect: bool,
    /// The headers, an object, as JSON text.
    pub headers: Option<Box<RawValue>>,
    /// The message, as JSON text: numbers are as they were sent, digit for digit.
    pub body: Box<RawValue>,
}

impl Message {
    /// Names the message.
    pub fn id(&self) -> MessageId {
        self.lease.id
    }

    /// Reads the body into a type.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`](crate::ErrorKind::InvalidPayload) when the body does not fit the type. The
    /// text gives the place and the reason, but no value of the message: it may end up in a log.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T> {
        self.parse().map_err(|error| {
            Error::payload(format!("message {} does not decode: {}", self.lease.id, payload::reason(&error)))
        })
    }

    /// Reads the body; the error says all that `serde` says, values included, and is for the database alone.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.body.get())
    }

    /// Reads one header; `None` when there is none of this name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`](crate::ErrorKind::InvalidPayload) when its value does not fit the type.
    pub fn header<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let Some(headers) = &self.headers else { return Ok(None) };
        let headers: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(headers.get()).unwrap_or_default();
        let Some(value) = headers.get(name) else { return Ok(None) };
        serde_json::from_value(value.clone()).map(Some).map_err(|error| {
            Error::payload(format!("header `{name}` does not decode: {}", payload::reason(&error)))
        })
    }

    /// Decodes a row of `vtq.read` or `vtq.peek`.
    pub(crate) fn from_row(row: &Row) -> Result<Self> {
        Self::decode_row(row).map_err(|error| Error::db("decode a message", &error))
    }

    fn decode_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            lease: Lease { id: row.try_get(0)?, read_ct: row.try_get(1)? },
            attempt: row.try_get(2)?,
            ready_at: row.try_get(3)?,
            enqueued_at: row.try_get(4)?,
            last_read_at: row.try_get(5)?,
            visible_at: row.try_get(6)?,
            headers: row.try_get::<_, Option<RawJson>>(7)?.map(|headers| headers.0),
            body: row.try_get::<_, RawJson>(8)?.0,
            priority: row.try_get(9)?,
            timeout: row.try_get::<_, Option<Interval>>(10)?.map(|timeout| timeout.0),
            is_suspect: row.try_get(11)?,
        })
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("lease", &self.lease)
            .field("attempt", &self.attempt)
            .field("ready_at", &self.ready_at)
            .field("enqueued_at", &self.enqueued_at)
            .field("visible_at", &self.visible_at)
            .field("priority", &self.priority)
            .field("timeout", &self.timeout)
            .field("is_suspect", &self.is_suspect)
            .field("headers_bytes", &self.headers.as_ref().map(|headers| headers.get().len()))
            .field("body_bytes", &self.body.get().len())
            .finish_non_exhaustive()
    }
}

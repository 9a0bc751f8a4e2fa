//! Reading and peeking.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::call::{self, Param};
use crate::error::{Error, Result};
use crate::message::{Message, MessageId};
use crate::name::QueueName;
use crate::sql;
use crate::wire::Interval;

/// How to read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    qty: usize,
    visibility_timeout: Option<Duration>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { qty: 1, visibility_timeout: None }
    }
}

impl ReadOptions {
    /// Starts with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many messages to read at the most, 1 to 10000. Default: 1.
    pub fn qty(mut self, qty: usize) -> Self {
        self.qty = qty;
        self
    }

    /// Sets how long the messages are hidden, 1 ms to 12 h. Default: the queue's, which is 30 s if not set.
    pub fn visibility_timeout(mut self, visibility_timeout: Duration) -> Self {
        self.visibility_timeout = Some(visibility_timeout);
        self
    }
}

/// The column that follows those of [`Message::from_row`].
const HAS_LANE: usize = 12;

/// A place in the line of one priority level.
pub(crate) type Place = (DateTime<Utc>, MessageId);

/// Places behind which a read begins, one a priority level. One without an instant is the front of the line. One without
/// a message holds even where other workers were given what lies behind it.
#[derive(Debug, Default)]
pub(crate) struct Floors {
    pub(crate) ready_at: Vec<Option<DateTime<Utc>>>,
    pub(crate) msg_id: Vec<Option<MessageId>>,
}

impl FromIterator<(Option<DateTime<Utc>>, Option<MessageId>)> for Floors {
    fn from_iter<I: IntoIterator<Item = (Option<DateTime<Utc>>, Option<MessageId>)>>(floors: I) -> Self {
        let (ready_at, msg_id) = floors.into_iter().unzip();
        Self { ready_at, msg_id }
    }
}

/// Reads as anybody does.
pub(crate) async fn read<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    options: &ReadOptions,
) -> Result<Vec<Message>> {
    let params: [Param<'_>; 3] = [
        (&queue.as_str(), Type::TEXT),
        (&options.visibility_timeout.map(Interval), Type::INTERVAL),
        (&qty(options.qty)?, Type::INT4),
    ];
    let what = format!("read from queue `{queue}`");
    let rows = call::own_rows(client, &what, &sql::own::read(queue), sql::READ, &params).await?;
    rows.iter().map(Message::from_row).collect()
}

/// A message as a worker reads it.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) message: Message,
    /// Whether others may wait for its end, in a group or for an exclusive key.
    pub(crate) has_lane: bool,
}

/// Reads as a worker does: behind its floors, under its number, and without waiting for the disk.
pub(crate) async fn claim<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    options: &ReadOptions,
    floors: Option<&Floors>,
    holder: i32,
) -> Result<Vec<Claimed>> {
    let qty = qty(options.qty)?;
    let visibility_timeout = options.visibility_timeout.map(Interval);
    let ready_at = floors.map(|floors| &floors.ready_at);
    let msg_id = floors.map(|floors| &floors.msg_id);
    let params: [Param<'_>; 6] = [
        (&queue.as_str(), Type::TEXT),
        (&visibility_timeout, Type::INTERVAL),
        (&qty, Type::INT4),
        (&ready_at, Type::TIMESTAMPTZ_ARRAY),
        (&msg_id, Type::INT8_ARRAY),
        (&holder, Type::INT4),
    ];
    let what = format!("read from queue `{queue}`");
    let rows = call::own_rows(client, &what, &sql::own::claim(queue), sql::CLAIM, &params).await?;
    let claimed =
        |row| Ok(Claimed { message: Message::from_row(row)?, has_lane: call::column(row, HAS_LANE, &what)? });
    rows.iter().map(claimed).collect()
}

/// Shows what a read would hand out.
pub(crate) async fn peek<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    quantity: usize,
) -> Result<Vec<Message>> {
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&qty(quantity)?, Type::INT4)];
    let rows = call::rows(client, &format!("peek into queue `{queue}`"), sql::PEEK, &params).await?;
    rows.iter().map(Message::from_row).collect()
}

fn qty(qty: usize) -> Result<i32> {
    i32::try_from(qty)
        .map_err(|_| Error::invalid(format!("qty {qty} is not allowed: it must be from 1 to 10000")))
}

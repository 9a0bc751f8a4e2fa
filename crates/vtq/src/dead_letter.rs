//! Dead letters: setting aside, sending back, purging, sweeping.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::call::{self, Param};
use crate::error::Result;
use crate::failure::Record;
use crate::message::{Lease, MessageId};
use crate::name::QueueName;
use crate::payload;
use crate::settle::{Holder, Settled};
use crate::wire::{Interval, Json};

/// Why a holder sets a message aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No retry can mend it.
    PermanentFailure,
    /// Its payload cannot be read.
    Undecodable,
    /// A person decided so.
    ByOperator,
}

impl Reason {
    /// Returns the reason as it stands in the dead letter's block.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PermanentFailure => "permanent_failure",
            Self::Undecodable => "undecodable",
            Self::ByOperator => "by_operator",
        }
    }
}

/// Which dead letters to redrive. Default: all.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RedriveFilter(Map<String, Value>);

impl RedriveFilter {
    /// Starts with all dead letters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes only those that died for this reason, such as `worker_died`.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        self.with("reason", reason.into())
    }

    /// Takes only those whose last error has this class.
    pub fn error_class(self, class: impl Into<String>) -> Self {
        self.with("error_class", class.into())
    }

    /// Takes only those that died before this instant: give the start of a loop, so that it ends.
    pub fn dead_before(self, at: DateTime<Utc>) -> Self {
        self.with("dead_before", at.to_rfc3339())
    }

    /// Takes only those that died after this instant.
    pub fn dead_after(self, at: DateTime<Utc>) -> Self {
        self.with("dead_after", at.to_rfc3339())
    }

    fn with(mut self, key: &str, value: String) -> Self {
        self.0.insert(key.into(), value.into());
        self
    }
}

/// Which dead letters to purge.
#[derive(Debug, Clone, Copy)]
pub enum Purge {
    /// This one.
    One(MessageId),
    /// Those that died this long ago or longer; zero: all.
    OlderThan(Duration),
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Messages that moved to the dead letters: exhausted or expired.
    pub dead: u64,
    /// Deliveries without an outcome that were written down.
    pub abandoned: u64,
}

/// Sets a held message aside.
pub(crate) async fn dead_letter<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    lease: Lease,
    reason: Reason,
    error: &Record,
    holder: Holder,
) -> Result<Settled> {
    let error = payload::encode("error", error)?;
    let params: [Param<'_>; 6] = [
        (&queue.as_str(), Type::TEXT),
        (&lease.id, Type::INT8),
        (&lease.read_ct, Type::INT4),
        (&reason.as_str(), Type::TEXT),
        (&Json(&error), Type::JSONB),
        (&holder, Type::INT4),
    ];
    let answer: String =
        call::value(client, &format!("dead-letter in queue `{queue}`"), crate::sql::DEAD_LETTER, &params)
            .await?;
    Ok(if answer == "dead" { Settled::Done } else { Settled::LeaseLost })
}

/// Sends one back.
pub(crate) async fn redrive<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    id: MessageId,
    delay: Option<Duration>,
) -> Result<bool> {
    let params: [Param<'_>; 3] =
        [(&queue.as_str(), Type::TEXT), (&id, Type::INT8), (&delay.map(Interval), Type::INTERVAL)];
    call::value(client, &format!("redrive in queue `{queue}`"), crate::sql::REDRIVE, &params).await
}

/// Sends one batch back.
pub(crate) async fn redrive_all<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    qty: u16,
    filter: &RedriveFilter,
) -> Result<u64> {
    let filter = payload::encode("filter", &filter.0)?;
    let params: [Param<'_>; 3] =
        [(&queue.as_str(), Type::TEXT), (&i32::from(qty), Type::INT4), (&Json(&filter), Type::JSONB)];
    let moved: i64 =
        call::value(client, &format!("redrive in queue `{queue}`"), crate::sql::REDRIVE_ALL, &params).await?;
    Ok(moved.unsigned_abs())
}

/// Counts those that cannot be sent back.
pub(crate) async fn redrive_taken<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    filter: &RedriveFilter,
) -> Result<u64> {
    let filter = payload::encode("filter", &filter.0)?;
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&Json(&filter), Type::JSONB)];
    let what = format!("count in queue `{queue}`");
    let taken: i64 = call::value(client, &what, crate::sql::REDRIVE_TAKEN, &params).await?;
    Ok(taken.unsigned_abs())
}

/// Removes one, or one batch.
pub(crate) async fn dlq_purge<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    which: Purge,
    qty: u16,
) -> Result<u64> {
    let (id, older_than) = match which {
        Purge::One(id) => (Some(id), None),
        Purge::OlderThan(age) => (None, Some(Interval(age))),
    };
    let params: [Param<'_>; 4] = [
        (&queue.as_str(), Type::TEXT),
        (&id, Type::INT8),
        (&older_than, Type::INTERVAL),
        (&i32::from(qty), Type::INT4),
    ];
    let removed: i64 = call::value(
        client,
        &format!("purge dead letters of queue `{queue}`"),
        crate::sql::DLQ_PURGE,
        &params,
    )
    .await?;
    Ok(removed.unsigned_abs())
}

/// Moves what can no longer run.
pub(crate) async fn sweep<C: GenericClient>(client: &C, queue: &QueueName, qty: u16) -> Result<Swept> {
    let what = format!("sweep queue `{queue}`");
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&i32::from(qty), Type::INT4)];
    let row = call::row(client, &what, crate::sql::SWEEP, &params).await?;
    let (dead, abandoned): (i64, i64) = (call::column(&row, 0, &what)?, call::column(&row, 1, &what)?);
    Ok(Swept { dead: dead.unsigned_abs(), abandoned: abandoned.unsigned_abs() })
}

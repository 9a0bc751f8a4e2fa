//! Settling: ending a lease, or lengthening it. A file of SQL a verb.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};

use crate::call::{self, Param};
use crate::error::{Error, ErrorKind, Result};
use crate::failure::Record;
use crate::message::{Lease, MessageId};
use crate::name::QueueName;
use crate::payload;
use crate::sql;
use crate::wire::{Interval, Json};

/// Whether a lease was still held.
#[must_use = "a lost lease means that somebody else may be running the message"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It was, and the call did what it says.
    Done,
    /// It was not: the message was delivered again, settled or cancelled. Nothing has changed.
    LeaseLost,
}

/// What became of a message that failed or was deferred.
#[must_use = "a lost lease means that somebody else may be running the message"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is due again at this instant.
    Again {
        /// The instant, of the database's clock.
        visible_at: DateTime<Utc>,
    },
    /// It is among the dead letters: no run is left.
    Dead,
    /// It is in the archive: a newer message with its unique key goes before it.
    Superseded,
    /// The lease was not held. Nothing has changed.
    LeaseLost,
}

/// The number of the worker whose lease it must be; `None` for whoever is no worker.
pub(crate) type Holder = Option<i32>;

/// Leases, split into the two arrays that the verbs take.
struct Pairs {
    ids: Vec<MessageId>,
    read_cts: Vec<i32>,
}

impl Pairs {
    fn of(leases: &[Lease]) -> Self {
        Self {
            ids: leases.iter().map(|lease| lease.id).collect(),
            read_cts: leases.iter().map(|lease| lease.read_ct).collect(),
        }
    }
}

/// Settles as done.
pub(crate) async fn ack<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    leases: &[Lease],
    holder: Holder,
) -> Result<Vec<MessageId>> {
    let pairs = Pairs::of(leases);
    let params: [Param<'_>; 4] = [
        (&queue.as_str(), Type::TEXT),
        (&pairs.ids, Type::INT8_ARRAY),
        (&pairs.read_cts, Type::INT4_ARRAY),
        (&holder, Type::INT4),
    ];
    let what = format!("ack in queue `{queue}`");
    call::own_values(client, &what, &sql::own::ack(queue), sql::ACK, &params).await
}

/// Lengthens leases.
pub(crate) async fn extend<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    leases: &[Lease],
    visibility_timeout: Option<Duration>,
) -> Result<Vec<MessageId>> {
    let pairs = Pairs::of(leases);
    let params: [Param<'_>; 4] = [
        (&queue.as_str(), Type::TEXT),
        (&pairs.ids, Type::INT8_ARRAY),
        (&pairs.read_cts, Type::INT4_ARRAY),
        (&visibility_timeout.map(Interval), Type::INTERVAL),
    ];
    let what = format!("extend leases in queue `{queue}`");
    call::own_values(client, &what, &sql::own::extend(queue), sql::EXTEND, &params).await
}

/// Lengthens leases without waiting for the disk, and says of each whether its run has started.
pub(crate) async fn beat<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    leases: &[(Lease, bool)],
    visibility_timeout: Duration,
    holder: i32,
) -> Result<Vec<MessageId>> {
    let (leases, started): (Vec<Lease>, Vec<bool>) = leases.iter().copied().unzip();
    let pairs = Pairs::of(&leases);
    let params: [Param<'_>; 6] = [
        (&queue.as_str(), Type::TEXT),
        (&pairs.ids, Type::INT8_ARRAY),
        (&pairs.read_cts, Type::INT4_ARRAY),
        (&Interval(visibility_timeout), Type::INTERVAL),
        (&started, Type::BOOL_ARRAY),
        (&holder, Type::INT4),
    ];
    let what = format!("extend leases in queue `{queue}`");
    call::own_values(client, &what, &sql::own::beat(queue), sql::BEAT, &params).await
}

/// Writes down how runs ended whose leases were lost.
pub(crate) async fn late<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    runs: &[(Lease, bool)],
) -> Result<i64> {
    let (leases, successes): (Vec<Lease>, Vec<bool>) = runs.iter().copied().unzip();
    let pairs = Pairs::of(&leases);
    let outcomes: Vec<&str> = successes
        .iter()
        .map(|is_success| if *is_success { "late_success" } else { "late_failure" })
        .collect();
    let params: [Param<'_>; 4] = [
        (&queue.as_str(), Type::TEXT),
        (&pairs.ids, Type::INT8_ARRAY),
        (&pairs.read_cts, Type::INT4_ARRAY),
        (&outcomes, Type::TEXT_ARRAY),
    ];
    call::value(client, &format!("record late runs in queue `{queue}`"), sql::LATE, &params).await
}

/// Settles as failed.
pub(crate) async fn fail<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    lease: Lease,
    error: &Record,
    retry_after: Option<Duration>,
    holder: Holder,
) -> Result<Fate> {
    let what = format!("record a failure in queue `{queue}`");
    let error = payload::encode("error", error)?;
    let params: [Param<'_>; 6] = [
        (&queue.as_str(), Type::TEXT),
        (&lease.id, Type::INT8),
        (&lease.read_ct, Type::INT4),
        (&Json(&error), Type::JSONB),
        (&retry_after.map(Interval), Type::INTERVAL),
        (&holder, Type::INT4),
    ];
    fate(&call::row(client, &what, sql::FAIL, &params).await?, &what)
}

/// Gives a delivery back for later.
pub(crate) async fn defer<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    lease: Lease,
    delay: Duration,
    reason: Option<&str>,
    holder: Holder,
) -> Result<Fate> {
    let what = format!("defer in queue `{queue}`");
    let reason = reason.map(crate::failure::clean);
    let params: [Param<'_>; 6] = [
        (&queue.as_str(), Type::TEXT),
        (&lease.id, Type::INT8),
        (&lease.read_ct, Type::INT4),
        (&Interval(delay), Type::INTERVAL),
        (&reason, Type::TEXT),
        (&holder, Type::INT4),
    ];
    fate(&call::row(client, &what, sql::DEFER, &params).await?, &what)
}

/// Gives deliveries back at once.
pub(crate) async fn release<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    leases: &[Lease],
    reason: Option<&str>,
    holder: Holder,
) -> Result<Vec<MessageId>> {
    let pairs = Pairs::of(leases);
    let reason = reason.map(crate::failure::clean);
    let params: [Param<'_>; 5] = [
        (&queue.as_str(), Type::TEXT),
        (&pairs.ids, Type::INT8_ARRAY),
        (&pairs.read_cts, Type::INT4_ARRAY),
        (&reason, Type::TEXT),
        (&holder, Type::INT4),
    ];
    call::values(client, &format!("release in queue `{queue}`"), sql::RELEASE, &params).await
}

fn fate(row: &Row, what: &str) -> Result<Fate> {
    let outcome: String = call::column(row, 0, what)?;
    Ok(match outcome.as_str() {
        "retry" | "deferred" => Fate::Again { visible_at: call::column(row, 1, what)? },
        "dead" => Fate::Dead,
        "superseded" => Fate::Superseded,
        "stale" => Fate::LeaseLost,
        other => {
            return Err(Error::new(
                ErrorKind::Database,
                format!("the database answered `{other}` to a failure"),
            ));
        }
    })
}

/// Tells whether the one lease of a call is among the ids that it answered.
pub(crate) fn settled(lease: Lease, ids: &[MessageId]) -> Settled {
    if ids.contains(&lease.id) { Settled::Done } else { Settled::LeaseLost }
}

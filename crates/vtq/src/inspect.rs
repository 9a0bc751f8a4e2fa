//! Looking: metrics of queues, dead letters, attempts. Nothing here changes anything.

mod debug;

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};

use crate::call::{self, Param, column};
use crate::connect::Vtq;
use crate::error::Result;
use crate::message::MessageId;
use crate::name::QueueName;
use crate::wire::{Interval, RawJson};

/// What is in a queue, and for how long. Counts are `None` for a queue that cannot be read.
#[derive(Clone)]
#[non_exhaustive]
pub struct Metrics {
    /// The queue.
    pub queue: String,
    /// Messages that a read would hand out.
    pub ready: Option<u64>,
    /// Messages that somebody holds.
    pub in_flight: Option<u64>,
    /// Messages that are not due yet and have not run.
    pub delayed: Option<u64>,
    /// Messages that wait for their next run after a failure.
    pub retrying: Option<u64>,
    /// Waiting for their turn in a group, or for a slot of their exclusive key.
    pub waiting: Option<u64>,
    /// Messages that have no run left, and wait to be moved to the dead letters.
    pub exhausted: Option<u64>,
    /// Messages past their `expires_at`, which wait to be moved to the dead letters.
    pub expired: Option<u64>,
    /// Dead letters.
    pub dead: Option<u64>,
    /// How long the first ready message has been due.
    pub oldest_ready_age: Option<Duration>,
    /// How long the first dead letter has been dead.
    pub oldest_dead_age: Option<Duration>,
    /// The class of the last error, else its code, else how its run ended; never its text.
    pub last_error_class: Option<String>,
    /// Messages ever sent.
    pub sent_total: Option<u64>,
    /// Whether reads are paused.
    pub is_paused: bool,
    /// When the pause ends by itself.
    pub paused_until: Option<DateTime<Utc>>,
    /// Why it is paused.
    pub pause_reason: Option<String>,
    /// The size of the live table with its indexes.
    pub table_bytes: Option<u64>,
    /// Whether a count is an estimate: counts past 5000, unless exact ones were asked for.
    pub is_estimated: bool,
    /// Why this queue cannot be read.
    pub error: Option<String>,
}

/// A dead letter as a list shows it.
#[derive(Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The message.
    pub id: MessageId,
    /// When it died.
    pub dead_lettered_at: DateTime<Utc>,
    /// When it was first sent.
    pub enqueued_at: DateTime<Utc>,
    /// Runs it had since it was sent or last redriven.
    pub attempts: i32,
    /// Deliveries it ever had.
    pub read_ct: i32,
    /// How often it was redriven.
    pub redrives: i32,
    /// Why it died.
    pub reason: String,
    /// The class of its last error.
    pub error_class: Option<String>,
    /// The text of its last error.
    pub error_message: Option<String>,
}

/// A dead letter, whole.
#[derive(Clone)]
#[non_exhaustive]
pub struct DeadLetterDetail {
    /// The message.
    pub id: MessageId,
    /// When it died.
    pub dead_lettered_at: DateTime<Utc>,
    /// When it was first sent.
    pub enqueued_at: DateTime<Utc>,
    /// Deliveries it ever had.
    pub read_ct: i32,
    /// Its headers, with the block that says why under `vtq_dead_letter`, as JSON text.
    pub headers: Box<RawValue>,
    /// The message, as JSON text.
    pub body: Box<RawValue>,
}

/// A delivery that did not succeed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Attempt {
    /// The number of the delivery.
    pub read_ct: i32,
    /// The attempt it was.
    pub attempt: i32,
    /// How it ended: `failed`, `timed_out`, `abandoned`, `released` and so on.
    pub outcome: String,
    /// When it was handed out.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// When the message was to be due again; `None`: no further run was granted.
    pub visible_at: Option<DateTime<Utc>>,
    /// The reason a holder gave for giving it back.
    pub reason: Option<String>,
    /// The error's class.
    pub error_class: Option<String>,
    /// The error's code.
    pub error_code: Option<String>,
    /// The error's text.
    pub error_message: Option<String>,
    /// The error's detail.
    pub error_detail: Option<String>,
    /// The worker that recorded it.
    pub worker: Option<String>,
}

/// A worker process, by its last sign of life.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// Host, pid and a random part: a restarted process is a new worker.
    pub id: String,
    /// The host that it runs on.
    pub host: String,
    /// Its process id there.
    pub pid: i32,
    /// The release of vtq that it is.
    pub version: String,
    /// The queues that it serves.
    pub queues: Vec<String>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When it last gave a sign of life.
    pub heartbeat_at: DateTime<Utc>,
    /// How long ago that was.
    pub heartbeat_age: Duration,
    /// When it last asked for messages: alive and working are two things.
    pub last_claim_at: Option<DateTime<Utc>>,
    /// How long ago that was.
    pub last_claim_age: Option<Duration>,
    /// How many messages it held then.
    pub in_flight: i32,
    /// How it learns of work when it is idle: `listening`, `deaf` (meant to listen, hears nothing, and polls instead)
    /// or `polling`; nothing while it is not known.
    pub wake_up: Option<String>,
}

impl Vtq {
    /// Lists the worker processes, the one that has run longest first.
    ///
    /// One that stopped cleanly is not listed; one that was killed is, for a day.
    ///
    /// # SQL
    /// `sql/functions/vtq.workers.sql`
    pub async fn workers(&self) -> Result<Vec<WorkerInfo>> {
        let client = self.client().await?;
        client.bounded("list the workers", workers(&*client)).await
    }

    /// Returns the database's clock, by which all instants of vtq go.
    pub async fn now(&self) -> Result<DateTime<Utc>> {
        let client = self.client().await?;
        let what = "ask the database for the time";
        client.bounded(what, call::value(&*client, what, crate::sql::NOW, &[])).await
    }
}

/// All workers.
async fn workers<C: GenericClient>(client: &C) -> Result<Vec<WorkerInfo>> {
    let what = "list the workers";
    let rows = call::rows(client, what, crate::sql::WORKERS, &[]).await?;
    let worker = |row: &Row| {
        Ok(WorkerInfo {
            id: column(row, 0, what)?,
            host: column(row, 1, what)?,
            pid: column(row, 2, what)?,
            version: column(row, 3, what)?,
            queues: column(row, 4, what)?,
            started_at: column(row, 5, what)?,
            heartbeat_at: column(row, 6, what)?,
            heartbeat_age: column::<Interval>(row, 7, what)?.0,
            last_claim_at: column(row, 8, what)?,
            last_claim_age: column::<Option<Interval>>(row, 9, what)?.map(|age| age.0),
            in_flight: column(row, 10, what)?,
            wake_up: column(row, 11, what)?,
        })
    };
    rows.iter().map(worker).collect()
}

/// Metrics of one queue.
pub(crate) async fn metrics<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    is_exact: bool,
) -> Result<Metrics> {
    let what = format!("measure queue `{queue}`");
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&is_exact, Type::BOOL)];
    metrics_of(&call::row(client, &what, crate::sql::METRICS, &params).await?)
}

/// Metrics of all queues, in order of name.
pub(crate) async fn metrics_all<C: GenericClient>(client: &C, is_exact: bool) -> Result<Vec<Metrics>> {
    let params: [Param<'_>; 1] = [(&is_exact, Type::BOOL)];
    let rows = call::rows(client, "measure the queues", crate::sql::METRICS_ALL, &params).await?;
    rows.iter().map(metrics_of).collect()
}

fn metrics_of(row: &Row) -> Result<Metrics> {
    let what = "read metrics";
    let count = |index| Ok(column::<Option<i64>>(row, index, what)?.map(i64::unsigned_abs));
    let age = |index| Ok(column::<Option<Interval>>(row, index, what)?.map(|age| age.0));
    Ok(Metrics {
        queue: column(row, 0, what)?,
        ready: count(1)?,
        in_flight: count(2)?,
        delayed: count(3)?,
        retrying: count(4)?,
        waiting: count(5)?,
        exhausted: count(6)?,
        expired: count(7)?,
        dead: count(8)?,
        oldest_ready_age: age(9)?,
        oldest_dead_age: age(10)?,
        last_error_class: column(row, 11, what)?,
        sent_total: count(12)?,
        paused_until: column(row, 13, what)?,
        is_paused: column(row, 14, what)?,
        pause_reason: column(row, 15, what)?,
        table_bytes: count(16)?,
        is_estimated: column::<Option<bool>>(row, 17, what)?.unwrap_or(false),
        error: column(row, 18, what)?,
    })
}

/// One page of dead letters, the last one to die first.
pub(crate) async fn dlq_list<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    qty: u16,
    before: Option<(DateTime<Utc>, MessageId)>,
) -> Result<Vec<DeadLetter>> {
    let what = format!("list dead letters of queue `{queue}`");
    let (at, id) = before.unzip();
    let params: [Param<'_>; 4] = [
        (&queue.as_str(), Type::TEXT),
        (&i32::from(qty), Type::INT4),
        (&at, Type::TIMESTAMPTZ),
        (&id, Type::INT8),
    ];
    let rows = call::rows(client, &what, crate::sql::DLQ_LIST, &params).await?;
    let letter = |row: &Row| {
        Ok(DeadLetter {
            id: column(row, 0, &what)?,
            dead_lettered_at: column(row, 1, &what)?,
            enqueued_at: column(row, 2, &what)?,
            attempts: column(row, 3, &what)?,
            read_ct: column(row, 4, &what)?,
            redrives: column(row, 5, &what)?,
            reason: column::<Option<String>>(row, 6, &what)?.unwrap_or_default(),
            error_class: column(row, 7, &what)?,
            error_message: column(row, 8, &what)?,
        })
    };
    rows.iter().map(letter).collect()
}

/// One dead letter, whole.
pub(crate) async fn dlq_show<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    id: MessageId,
) -> Result<Option<DeadLetterDetail>> {
    let what = format!("show a dead letter of queue `{queue}`");
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&id, Type::INT8)];
    let rows = call::rows(client, &what, crate::sql::DLQ_SHOW, &params).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(DeadLetterDetail {
        id,
        dead_lettered_at: column(row, 0, &what)?,
        enqueued_at: column(row, 1, &what)?,
        read_ct: column(row, 2, &what)?,
        headers: column::<RawJson>(row, 3, &what)?.0,
        body: column::<RawJson>(row, 4, &what)?.0,
    }))
}

/// The deliveries of a message that did not succeed, the first one first.
pub(crate) async fn attempts<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    id: MessageId,
) -> Result<Vec<Attempt>> {
    let what = format!("list attempts in queue `{queue}`");
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&id, Type::INT8)];
    let rows = call::rows(client, &what, crate::sql::ATTEMPTS, &params).await?;
    let attempt = |row: &Row| {
        Ok(Attempt {
            read_ct: column(row, 0, &what)?,
            attempt: column(row, 1, &what)?,
            outcome: column(row, 2, &what)?,
            started_at: column(row, 3, &what)?,
            ended_at: column(row, 4, &what)?,
            visible_at: column(row, 5, &what)?,
            reason: column(row, 6, &what)?,
            error_class: column(row, 7, &what)?,
            error_code: column(row, 8, &what)?,
            error_message: column(row, 9, &what)?,
            error_detail: column(row, 10, &what)?,
            worker: column(row, 11, &what)?,
        })
    };
    rows.iter().map(attempt).collect()
}

/// Why a message does not run now, and what happened to it so far.
pub(crate) async fn explain<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    id: MessageId,
) -> Result<Box<RawValue>> {
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&id, Type::INT8)];
    let json: RawJson =
        call::value(client, &format!("explain a message of queue `{queue}`"), crate::sql::EXPLAIN, &params)
            .await?;
    Ok(json.0)
}

//! A person's verbs: creating, changing, dropping, pausing, maintaining queues; cancelling and hurrying messages.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::backoff::Backoff;
use crate::call::{self, Param};
use crate::error::{Error, Result};
use crate::message::MessageId;
use crate::name::QueueName;
use crate::payload;
use crate::wire::{Json, RawJson};

/// The options of a queue. What is not set is the default's.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueueOptions(Map<String, Value>);

/// What becomes of a message that is settled as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnAck {
    /// It moves to the queue's archive, by day.
    Archive,
    /// It is deleted.
    Delete,
}

/// What becomes of a group of messages when one of them goes to the dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupOnDead {
    /// The next one runs.
    Continue,
    /// The group waits until the dead letter is redriven or purged.
    Pause,
}

/// So many messages in a length of time: a token bucket that holds `limit` and refills evenly over `interval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many, 1 to 1000000.
    pub limit: u32,
    /// In how long, 1 ms to 365 days.
    pub interval: Duration,
}

impl Rate {
    fn json(self) -> Value {
        serde_json::json!({"limit": self.limit, "interval": self.interval.as_secs_f64()})
    }
}

/// Whether a call created the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It did.
    New,
    /// The queue was there, with the same options. Tables that were missing have been built again.
    Existing,
}

impl QueueOptions {
    /// Starts with nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes options as they stand in SQL: names and JSON values. The database checks them.
    pub fn from_json(options: Map<String, Value>) -> Self {
        Self(options)
    }

    /// Sets how long a read hides a message, 1 ms to 12 h. Default: 30 s.
    pub fn visibility_timeout(self, length: Duration) -> Self {
        self.with("visibility_timeout", length.as_secs_f64())
    }

    /// Sets how many runs are allowed, the first included; 1 to 32767. Default: 5.
    pub fn max_attempts(self, max_attempts: u16) -> Self {
        self.with("max_attempts", max_attempts)
    }

    /// Sets the backoff. Default: exponential from 5 s to 300 s with a jitter of 15 percent.
    pub fn backoff(self, backoff: &Backoff) -> Self {
        let value = serde_json::to_value(backoff).expect("a backoff is plain data");
        self.with("backoff", value)
    }

    /// Sets how long one run may take; `None`: no limit. Default: 15 min.
    pub fn timeout(self, timeout: impl Into<Option<Duration>>) -> Self {
        self.with("timeout", timeout.into().map(|limit| limit.as_secs_f64()))
    }

    /// Sets what becomes of settled messages. Default: they are archived.
    pub fn on_ack(self, on_ack: OnAck) -> Self {
        self.with("on_ack", if on_ack == OnAck::Archive { "archive" } else { "delete" })
    }

    /// Sets how long settled messages are kept; `None`: for ever. Default: 7 days.
    pub fn archive_retention(self, length: impl Into<Option<Duration>>) -> Self {
        self.with("archive_retention", length.into().map(|length| length.as_secs_f64()))
    }

    /// Sets how long attempts are kept; `None`: for ever. Default: 30 days.
    pub fn attempts_retention(self, length: impl Into<Option<Duration>>) -> Self {
        self.with("attempts_retention", length.into().map(|length| length.as_secs_f64()))
    }

    /// Sets how long dead letters are kept; `None`: for ever. Default: for ever.
    pub fn dlq_retention(self, length: impl Into<Option<Duration>>) -> Self {
        self.with("dlq_retention", length.into().map(|length| length.as_secs_f64()))
    }

    /// Sets the priority levels, the one served first in front. Default: only 0.
    pub fn priorities(self, levels: impl IntoIterator<Item = i16>) -> Self {
        self.with("priorities", levels.into_iter().collect::<Vec<_>>())
    }

    /// Sets how many messages of one exclusive key run at once, 1 to 10000. Default: 1.
    pub fn exclusive_limit(self, limit: u32) -> Self {
        self.with("exclusive_limit", limit)
    }

    /// Sets what becomes of a group whose message died. Default: it goes on with the next.
    pub fn group_on_dead(self, group_on_dead: GroupOnDead) -> Self {
        let word = if group_on_dead == GroupOnDead::Continue { "continue" } else { "pause" };
        self.with("group_on_dead", word)
    }

    /// Sets how many messages of the queue run at once over all workers, 1 to 1000000; `None`: no limit. Default: none.
    pub fn max_in_flight(self, limit: impl Into<Option<u32>>) -> Self {
        self.with("max_in_flight", limit.into())
    }

    /// Sets how many messages are handed out in a length of time; `None`: no limit. Default: none.
    pub fn rate(self, rate: impl Into<Option<Rate>>) -> Self {
        self.with("rate", rate.into().map(Rate::json))
    }

    /// Sets how many messages of one group or exclusive key are handed out in a length of time; `None`: no limit.
    /// Default: none.
    pub fn key_rate(self, rate: impl Into<Option<Rate>>) -> Self {
        self.with("key_rate", rate.into().map(Rate::json))
    }

    /// Sets how long a message may be ready before it goes ahead of the higher levels; `None`: never. Default: 1 hour.
    pub fn aging(self, length: impl Into<Option<Duration>>) -> Self {
        self.with("aging", length.into().map(|length| length.as_secs_f64()))
    }

    /// Makes the queue's live table write no WAL: faster, and emptied by a crash of the server. Default: false.
    pub fn unlogged(self, unlogged: bool) -> Self {
        self.with("unlogged", unlogged)
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }
}

/// Creates a queue.
pub(crate) async fn create<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    options: &QueueOptions,
) -> Result<Created> {
    let options = payload::encode("options", &options.0)?;
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&Json(&options), Type::JSONB)];
    let is_new: bool =
        call::value(client, &format!("create queue `{queue}`"), crate::sql::CREATE_QUEUE, &params).await?;
    Ok(if is_new { Created::New } else { Created::Existing })
}

/// Changes options, and answers all of them.
pub(crate) async fn set<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    options: &QueueOptions,
) -> Result<Map<String, Value>> {
    let options = payload::encode("options", &options.0)?;
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&Json(&options), Type::JSONB)];
    object(call::value(client, &format!("change queue `{queue}`"), crate::sql::SET_QUEUE, &params).await?)
}

/// Answers all options.
pub(crate) async fn options<C: GenericClient>(client: &C, queue: &QueueName) -> Result<Map<String, Value>> {
    let params: [Param<'_>; 1] = [(&queue.as_str(), Type::TEXT)];
    object(
        call::value(client, &format!("look up queue `{queue}`"), crate::sql::QUEUE_OPTIONS, &params).await?,
    )
}

/// Removes a queue with all that is in it.
pub(crate) async fn drop_queue<C: GenericClient>(client: &C, queue: &QueueName) -> Result<bool> {
    let params: [Param<'_>; 1] = [(&queue.as_str(), Type::TEXT)];
    call::value(client, &format!("drop queue `{queue}`"), crate::sql::DROP_QUEUE, &params).await
}

/// Stops reads.
pub(crate) async fn pause<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    reason: Option<&str>,
    until: Option<DateTime<Utc>>,
) -> Result<bool> {
    let params: [Param<'_>; 3] =
        [(&queue.as_str(), Type::TEXT), (&reason, Type::TEXT), (&until, Type::TIMESTAMPTZ)];
    call::value(client, &format!("pause queue `{queue}`"), crate::sql::PAUSE, &params).await
}

/// Lets reads go on.
pub(crate) async fn resume<C: GenericClient>(client: &C, queue: &QueueName) -> Result<bool> {
    let params: [Param<'_>; 1] = [(&queue.as_str(), Type::TEXT)];
    call::value(client, &format!("resume queue `{queue}`"), crate::sql::RESUME, &params).await
}

/// Removes a live message.
pub(crate) async fn cancel<C: GenericClient>(client: &C, queue: &QueueName, id: MessageId) -> Result<bool> {
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&id, Type::INT8)];
    call::value(client, &format!("cancel in queue `{queue}`"), crate::sql::CANCEL, &params).await
}

/// Makes a message that waits due now.
pub(crate) async fn run_now<C: GenericClient>(client: &C, queue: &QueueName, id: MessageId) -> Result<bool> {
    let params: [Param<'_>; 2] = [(&queue.as_str(), Type::TEXT), (&id, Type::INT8)];
    call::value(client, &format!("hurry a message of queue `{queue}`"), crate::sql::RUN_NOW, &params).await
}

/// Retention, partitions, compaction.
pub(crate) async fn maintain<C: GenericClient>(client: &C, queue: &QueueName) -> Result<Map<String, Value>> {
    let params: [Param<'_>; 1] = [(&queue.as_str(), Type::TEXT)];
    object(call::value(client, &format!("maintain queue `{queue}`"), crate::sql::MAINTAIN, &params).await?)
}

fn object(json: RawJson) -> Result<Map<String, Value>> {
    serde_json::from_str(json.0.get())
        .map_err(|error| Error::payload(format!("the database answered no JSON object: {error}")))
}

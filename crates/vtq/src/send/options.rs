//! What a send may say about its messages.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::key::{Keys, OnConflict, UniqueUntil};
use crate::backoff::Backoff;
use crate::error::{Error, Result};
use crate::payload;

/// What a send says about its message; the queue's settings fill in the rest.
///
/// `Debug` shows how many headers there are, and not what is in them.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SendOptions {
    pub(super) headers: Map<String, Value>,
    pub(super) delay: Option<Duration>,
    pub(super) visible_at: Option<DateTime<Utc>>,
    pub(super) priority: Option<i16>,
    pub(super) max_attempts: Option<u16>,
    backoff: Option<Backoff>,
    timeout: Option<Option<Duration>>,
    pub(super) expires_at: Option<DateTime<Utc>>,
    pub(super) retry_until: Option<DateTime<Utc>>,
    pub(super) keys: Keys,
    pub(super) unique_until: Option<UniqueUntil>,
    pub(super) unique_for: Option<Duration>,
    pub(super) on_conflict: Option<OnConflict>,
    pub(super) max_wait: Option<Duration>,
}

impl SendOptions {
    /// Starts with nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a header. Keys that begin with `vtq_` are vtq's own and are refused.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets all headers at once.
    pub fn headers(mut self, headers: Map<String, Value>) -> Self {
        self.headers = headers;
        self
    }

    /// Makes the message due this long after the call. Default: at once. At most 36500 days.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Makes the message due at this instant, which excludes a delay; one that is past means at once.
    pub fn visible_at(mut self, visible_at: DateTime<Utc>) -> Self {
        self.visible_at = Some(visible_at);
        self
    }

    /// Sets the level. Default: 0, or the queue's last level where it has no 0.
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets how many runs are allowed, the first included; 1 to 32767. Default: the queue's.
    pub fn max_attempts(mut self, max_attempts: u16) -> Self {
        self.max_attempts = Some(max_attempts);
        self
    }

    /// Sets the backoff of this message. Default: the queue's.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Sets how long one run of this message may take; `None`: no limit. Default: the queue's.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// Forbids to start the message after this instant.
    pub fn expires_at(mut self, expires_at: DateTime<Utc>) -> Self {
        self.expires_at = Some(expires_at);
        self
    }

    /// Forbids to run the message again after this instant, which must come after it is due.
    pub fn retry_until(mut self, retry_until: DateTime<Utc>) -> Self {
        self.retry_until = Some(retry_until);
        self
    }

    /// Gives the message a key that at most one live message of the queue has, of 1 to 1024 bytes.
    ///
    /// In a batch it is the key of each message that has none of its own. See [`on_conflict`](Self::on_conflict) for
    /// what happens when it is taken, and [`Queue::send_report`](crate::Queue::send_report) for how to learn of it.
    pub fn unique_key(mut self, key: impl Into<String>) -> Self {
        self.keys.unique = Some(key.into());
        self
    }

    /// Sets when the unique key is free again. Default: [`Done`](UniqueUntil::Done), and
    /// [`Started`](UniqueUntil::Started) for a debounce, that is [`OnConflict::Replace`] with a delay.
    pub fn unique_until(mut self, until: UniqueUntil) -> Self {
        self.unique_until = Some(until);
        self
    }

    /// Keeps the unique key taken this long after success as well. At most 36500 days.
    pub fn unique_for(mut self, length: Duration) -> Self {
        self.unique_for = Some(length);
        self
    }

    /// Sets what happens when the unique key is taken. Default: [`Skip`](OnConflict::Skip).
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.on_conflict = Some(on_conflict);
        self
    }

    /// Sets how far later sends may put the message off, counted from its first one.
    ///
    /// Needs [`OnConflict::Replace`] and a delay, and is at least as long as that. Default: for ever.
    pub fn max_wait(mut self, length: Duration) -> Self {
        self.max_wait = Some(length);
        self
    }

    /// Puts the message into a group: its messages run one after the other, in order.
    pub fn group_key(mut self, key: impl Into<String>) -> Self {
        self.keys.group = Some(key.into());
        self
    }

    /// Gives the message a key of which at most so many run at once, in no order. Excludes a group.
    pub fn exclusive_key(mut self, key: impl Into<String>) -> Self {
        self.keys.exclusive = Some(key.into());
        self
    }

    pub(super) fn policy(&self) -> Result<Option<String>> {
        let mut policy = Map::new();
        if let Some(backoff) = &self.backoff {
            let value =
                serde_json::to_value(backoff).map_err(|error| Error::invalid(format!("backoff: {error}")))?;
            policy.insert("backoff".into(), value);
        }
        if let Some(timeout) = self.timeout {
            policy.insert("timeout".into(), timeout.map(|limit| limit.as_secs_f64()).into());
        }
        if policy.is_empty() { Ok(None) } else { payload::encode("policy", &policy).map(Some) }
    }

    pub(super) fn headers_text(&self) -> Result<Option<String>> {
        if self.headers.is_empty() { Ok(None) } else { payload::encode("headers", &self.headers).map(Some) }
    }
}

impl fmt::Debug for SendOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendOptions")
            .field("headers", &self.headers.len())
            .field("delay", &self.delay)
            .field("visible_at", &self.visible_at)
            .field("priority", &self.priority)
            .field("max_attempts", &self.max_attempts)
            .field("backoff", &self.backoff)
            .field("timeout", &self.timeout)
            .field("expires_at", &self.expires_at)
            .field("retry_until", &self.retry_until)
            .field("keys", &self.keys)
            .field("unique_until", &self.unique_until)
            .field("unique_for", &self.unique_for)
            .field("on_conflict", &self.on_conflict)
            .field("max_wait", &self.max_wait)
            .finish()
    }
}

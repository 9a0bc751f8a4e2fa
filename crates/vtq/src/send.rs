//! Sending.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::backoff::Backoff;
use crate::call::{self, Param};
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageId;
use crate::name::QueueName;
use crate::payload;
use crate::wire::{Interval, Json};

/// What a send says about its message; the queue's settings fill in the rest.
///
/// `Debug` shows how many headers there are, and not what is in them.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SendOptions {
    headers: Map<String, Value>,
    delay: Option<Duration>,
    visible_at: Option<DateTime<Utc>>,
    priority: Option<i16>,
    max_attempts: Option<u16>,
    backoff: Option<Backoff>,
    timeout: Option<Option<Duration>>,
    expires_at: Option<DateTime<Utc>>,
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

    fn policy(&self) -> Result<Option<String>> {
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

    fn headers_text(&self) -> Result<Option<String>> {
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
            .finish()
    }
}

/// One message of a batch: its body and its own headers.
///
/// `Debug` shows how long they are, and not what is in them.
#[derive(Clone, Default)]
pub struct Outgoing {
    body: String,
    headers: Option<String>,
}

impl Outgoing {
    /// Makes a message of anything that `serde` can write.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`] for what JSON or `jsonb` cannot hold, with the place in the message.
    pub fn new(message: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(Self { body: payload::encode("message", message)?, headers: None })
    }

    /// Makes a message of JSON text, which is sent as it is.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`] for text that is no JSON, or that `jsonb` cannot hold.
    pub fn from_json(text: impl Into<String>) -> Result<Self> {
        let body = text.into();
        payload::check_text("message", &body)?;
        Ok(Self { body, headers: None })
    }

    /// Returns the body, as JSON text.
    pub(crate) fn body(&self) -> &str {
        &self.body
    }

    /// Gives the message headers of its own.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`] for what `jsonb` cannot hold.
    pub fn headers(mut self, headers: &Map<String, Value>) -> Result<Self> {
        self.headers = Some(payload::encode("headers", headers)?);
        Ok(self)
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("body_bytes", &self.body.len())
            .field("headers_bytes", &self.headers.as_ref().map(String::len))
            .finish()
    }
}

/// The parameters behind the body and the headers, which a single send and a batch share.
struct Rest {
    delay: Option<Interval>,
    visible_at: Option<DateTime<Utc>>,
    priority: Option<i32>,
    max_attempts: Option<i32>,
    policy: Option<String>,
    expires_at: Option<DateTime<Utc>>,
}

impl Rest {
    fn of(options: &SendOptions) -> Result<Self> {
        Ok(Self {
            delay: options.delay.map(Interval),
            visible_at: options.visible_at,
            priority: options.priority.map(i32::from),
            max_attempts: options.max_attempts.map(i32::from),
            policy: options.policy()?,
            expires_at: options.expires_at,
        })
    }
}

/// Sends what `message` encodes to.
pub(crate) async fn send<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    message: &Outgoing,
    options: &SendOptions,
) -> Result<MessageId> {
    let what = format!("send to queue `{queue}`");
    let rest = Rest::of(options)?;
    let own = match &message.headers {
        Some(own) => Some(own.clone()),
        None => options.headers_text()?,
    };
    let (headers, policy) = (own.as_deref().map(Json), rest.policy.as_deref().map(Json));
    let params: [Param<'_>; 9] = [
        (&queue.as_str(), Type::TEXT),
        (&Json(&message.body), Type::JSONB),
        (&headers, Type::JSONB),
        (&rest.delay, Type::INTERVAL),
        (&rest.visible_at, Type::TIMESTAMPTZ),
        (&rest.priority, Type::INT4),
        (&rest.max_attempts, Type::INT4),
        (&policy, Type::JSONB),
        (&rest.expires_at, Type::TIMESTAMPTZ),
    ];
    call::value(client, &what, crate::sql::SEND, &params).await
}

/// Sends many, all or none; a message without headers of its own has those of the options.
pub(crate) async fn send_batch<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    messages: &[Outgoing],
    options: &SendOptions,
) -> Result<Vec<MessageId>> {
    let what = format!("send {} messages to queue `{queue}`", messages.len());
    let rest = Rest::of(options)?;
    let shared = options.headers_text()?;
    let bodies: Vec<Json<'_>> = messages.iter().map(|message| Json(&message.body)).collect();
    let headers: Vec<Option<Json<'_>>> =
        messages.iter().map(|message| message.headers.as_deref().or(shared.as_deref()).map(Json)).collect();
    let headers = headers.iter().any(Option::is_some).then_some(headers);
    let policy = rest.policy.as_deref().map(Json);
    let params: [Param<'_>; 9] = [
        (&queue.as_str(), Type::TEXT),
        (&bodies, Type::JSONB_ARRAY),
        (&headers, Type::JSONB_ARRAY),
        (&rest.delay, Type::INTERVAL),
        (&rest.visible_at, Type::TIMESTAMPTZ),
        (&rest.priority, Type::INT4),
        (&rest.max_attempts, Type::INT4),
        (&policy, Type::JSONB),
        (&rest.expires_at, Type::TIMESTAMPTZ),
    ];
    match call::values(client, &what, crate::sql::SEND_BATCH, &params).await {
        Err(error) if error.kind() == ErrorKind::InvalidPayload => Err(blame(messages, error)),
        answer => answer,
    }
}

/// The database refused an element and does not say which. Nesting is all that it is stricter about than
/// [`payload`], so the deepest one it is.
fn blame(messages: &[Outgoing], error: Error) -> Error {
    let deepest = messages.iter().enumerate().max_by_key(|(_, message)| depth(&message.body));
    match deepest {
        Some((index, _)) => error.at(index),
        None => error,
    }
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

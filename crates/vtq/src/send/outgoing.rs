//! A message on its way out.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::key::Keys;
use crate::error::Result;
use crate::payload;

/// One message of a batch: its body, and headers and keys of its own.
///
/// `Debug` shows how long they are, and not what is in them.
#[derive(Clone, Default)]
pub struct Outgoing {
    pub(crate) body: String,
    pub(super) headers: Option<String>,
    pub(super) keys: Keys,
}

impl Outgoing {
    /// Makes a message of anything that `serde` can write.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`](crate::ErrorKind::InvalidPayload) for what JSON or `jsonb` cannot hold, with the place in the message.
    pub fn new(message: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(Self { body: payload::encode("message", message)?, headers: None, keys: Keys::default() })
    }

    /// Makes a message of JSON text, which is sent as it is.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`](crate::ErrorKind::InvalidPayload) for text that is no JSON, or that `jsonb` cannot hold.
    pub fn from_json(text: impl Into<String>) -> Result<Self> {
        let body = text.into();
        payload::check_text("message", &body)?;
        Ok(Self { body, headers: None, keys: Keys::default() })
    }

    /// Gives the message headers of its own.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`](crate::ErrorKind::InvalidPayload) for what `jsonb` cannot hold.
    pub fn headers(mut self, headers: &Map<String, Value>) -> Result<Self> {
        self.headers = Some(payload::encode("headers", headers)?);
        Ok(self)
    }

    /// Gives the message a unique key of its own; see [`SendOptions::unique_key`](crate::SendOptions::unique_key).
    pub fn unique_key(mut self, key: impl Into<String>) -> Self {
        self.keys.unique = Some(key.into());
        self
    }

    /// Puts the message into a group of its own; see [`SendOptions::group_key`](crate::SendOptions::group_key).
    pub fn group_key(mut self, key: impl Into<String>) -> Self {
        self.keys.group = Some(key.into());
        self
    }

    /// Gives the message an exclusive key of its own; see
    /// [`SendOptions::exclusive_key`](crate::SendOptions::exclusive_key).
    pub fn exclusive_key(mut self, key: impl Into<String>) -> Self {
        self.keys.exclusive = Some(key.into());
        self
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("body_bytes", &self.body.len())
            .field("headers_bytes", &self.headers.as_ref().map(String::len))
            .field("keys", &self.keys)
            .finish()
    }
}

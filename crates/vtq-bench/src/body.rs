//! The message that all peers carry.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// How long a message is as JSON text.
const BYTES: usize = 200;

/// What is in a message: when it was made, its number, and filler.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Body {
    /// Microseconds since 1970, by the clock of the machine: producers and consumers may be processes of their own.
    pub(crate) at: i64,
    pub(crate) n: i64,
    pub(crate) pad: String,
}

impl Body {
    /// Makes message `n`, 200 bytes long.
    pub(crate) fn new(n: i64) -> Self {
        let mut body = Self { at: now_us(), n, pad: String::new() };
        let bare = serde_json::to_string(&body).map_or(0, |text| text.len());
        body.pad = "x".repeat(BYTES.saturating_sub(bare));
        body
    }

    /// Makes `count` messages, numbered from `first`.
    pub(crate) fn batch(first: i64, count: usize) -> Vec<Self> {
        (first..).take(count).map(Self::new).collect()
    }
}

/// Microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_200_bytes_whatever_its_number() {
        for n in [0, 7, 123_456_789] {
            let text = serde_json::to_string(&Body::new(n)).unwrap_or_default();

            assert_eq!(text.len(), 200, "{text}");
        }
    }
}

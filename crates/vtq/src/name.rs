//! Queue names: checked once at the door, trusted afterwards.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Result};

/// The longest name, in bytes. The channel and the longest table name made of it stay under Postgres's 63.
const MAX_BYTES: usize = 47;
/// A table `<queue>_dlq` belongs to `<queue>`, so that no queue may be called like one.
const RESERVED_SUFFIXES: [&str; 3] = ["_dlq", "_archive", "_attempts"];
const RULE: &str = "a queue name is 1 to 47 bytes of a-z, 0-9, `_` and `-`, begins with a letter or a digit, \
                    and does not end in _dlq, _archive or _attempts";
/// How much of a refused name an error shows.
const SHOWN_CHARS: usize = 80;

/// The name of a queue, known to be valid.
///
/// 1 to 47 bytes, `^[a-z0-9][a-z0-9_-]*$`, not ending in `_dlq`, `_archive` or `_attempts`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), saying which part of the rule is broken.
    pub fn new(name: &str) -> Result<Self> {
        match broken_rule(name) {
            None => Ok(Self(name.into())),
            Some(why) => Err(Error::invalid(format!("{} is not a queue name: {why}; {RULE}", shown(name)))),
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the channel that is notified of new messages: `vtq_<queue>`.
    pub fn channel(&self) -> String {
        format!("vtq_{}", self.0)
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for QueueName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for QueueName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::new(name)
    }
}

impl TryFrom<&str> for QueueName {
    type Error = Error;

    fn try_from(name: &str) -> Result<Self> {
        Self::new(name)
    }
}

impl TryFrom<String> for QueueName {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        Self::new(&name)
    }
}

fn broken_rule(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.is_empty() {
        return Some("it is empty".into());
    }
    if name.len() > MAX_BYTES {
        return Some(format!("it is {} bytes long", name.len()));
    }
    let lower = name.to_ascii_lowercase();
    if lower != name && broken_rule(&lower).is_none() {
        return Some(format!("it has an uppercase letter (try `{lower}`)"));
    }
    if let Some(other) = name.chars().find(|&c| !is_plain(c) && c != '_' && c != '-') {
        return Some(format!("it has {other:?} in it"));
    }
    if name.starts_with(['_', '-']) {
        return Some(format!("it begins with `{}`", &name[..1]));
    }
    let suffix = RESERVED_SUFFIXES.iter().find(|suffix| name.ends_with(**suffix))?;
    Some(format!("it ends in {suffix}"))
}

fn shown(name: &str) -> String {
    let quoted = format!("{name:?}");
    if quoted.chars().count() <= SHOWN_CHARS {
        return quoted;
    }
    quoted.chars().take(SHOWN_CHARS).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn refusal(name: &str) -> String {
        let error = QueueName::new(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        error.to_string()
    }

    #[test]
    fn length_is_1_to_47_bytes() {
        for length in 0..=64 {
            let name = "q".repeat(length);

            assert_eq!(QueueName::new(&name).is_ok(), (1..=47).contains(&length), "length {length}");
        }
    }

    #[test]
    fn every_byte_of_the_alphabet_is_accepted_and_no_other() {
        for byte in 0..=127u8 {
            let c = byte as char;
            let plain = c.is_ascii_lowercase() || c.is_ascii_digit();

            assert_eq!(QueueName::new(&format!("q{c}")).is_ok(), plain || c == '_' || c == '-', "{c:?}");
            assert_eq!(QueueName::new(&c.to_string()).is_ok(), plain, "{c:?} as the first");
        }
    }

    #[test]
    fn names_of_queue_tables_are_refused() {
        for name in ["orders_dlq", "orders_archive", "orders_attempts", "a_dlq_dlq"] {
            assert!(refusal(name).contains("it ends in _"), "{name}");
        }
        for name in ["dlq", "orders-dlq", "orders_dlqs", "archive", "dlq_orders"] {
            assert!(QueueName::new(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn uppercase_is_answered_with_the_lowercase_name() {
        assert!(refusal("Orders").contains("(try `orders`)"));
        assert!(refusal("Orders Two").contains("it has 'O' in it"));
        assert!(refusal("ORDERS_DLQ").contains("it has 'O' in it"));
    }

    #[test]
    fn injections_and_other_scripts_are_refused_and_escaped() {
        for name in ["q\"; DROP TABLE x; --", "q'", "ordérs", "очередь", "q\u{0}", "q\n", " q", "😀", "a.b"]
        {
            let text = refusal(name);

            assert!(text.contains(&format!("{name:?}")), "{text}");
            assert!(!text.contains('\n') && !text.contains('\0'), "{text}");
        }
    }

    #[test]
    fn long_refused_name_is_cut() {
        let text = refusal(&"é".repeat(100_000));

        assert!(text.chars().count() < 400, "{}", text.chars().count());
        assert!(text.contains("it is 200000 bytes long"), "{text}");
    }

    #[test]
    fn refusal_reads_as_a_sentence() {
        assert_eq!(
            refusal(""),
            "\"\" is not a queue name: it is empty; a queue name is 1 to 47 bytes of a-z, 0-9, `_` and `-`, \
             begins with a letter or a digit, and does not end in _dlq, _archive or _attempts"
        );
    }

    #[test]
    fn channel_fits_an_identifier() {
        let name: QueueName = "q".repeat(47).parse().unwrap();

        assert!(name.channel().len() <= 63);
        assert_eq!(QueueName::new("orders").unwrap().channel(), "vtq_orders");
    }
}

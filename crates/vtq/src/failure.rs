//! What went wrong with a run, in the shape that is stored with the attempt and the dead letter.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The longest message or detail that is kept, in bytes; what is longer is cut with a marker.
const LONGEST: usize = 16 * 1024;

/// Why a run failed, and what that means for the message.
///
/// Made from any error by `?` or `into`: its type becomes the class, its text the message, its sources the detail.
/// By itself it asks for a retry after the policy's backoff.
#[derive(Clone)]
pub struct Failure {
    pub(crate) error: Record,
    pub(crate) verdict: Verdict,
}

/// What a failure asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Retry(Option<Duration>),
    Permanent,
    Undecodable,
}

/// The stored shape of an error. See `sql/functions/vtq._clean_error.sql`.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<String>,
}

impl Failure {
    /// A failure with a text, to be retried.
    pub fn new(message: impl AsRef<str>) -> Self {
        let error = Record { message: Some(clean(message.as_ref())), ..Record::default() };
        Self { error, verdict: Verdict::Retry(None) }
    }

    /// A failure that no retry can mend: the message goes to the dead letters.
    pub fn permanent(message: impl AsRef<str>) -> Self {
        Self { verdict: Verdict::Permanent, ..Self::new(message) }
    }

    /// A message that cannot be read: it goes to the dead letters, with that reason.
    pub fn undecodable(message: impl AsRef<str>) -> Self {
        Self { verdict: Verdict::Undecodable, ..Self::new(message) }
    }

    /// Makes this failure one that no retry can mend.
    pub fn into_permanent(mut self) -> Self {
        self.verdict = Verdict::Permanent;
        self
    }

    /// Asks for the next run after this long, instead of the policy's backoff. Never shortened by jitter.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.verdict = Verdict::Retry(Some(wait));
        self
    }

    /// Sets the class, such as a type's name; cut at 200 characters.
    pub fn class(mut self, class: impl AsRef<str>) -> Self {
        self.error.class = Some(clean(class.as_ref()));
        self
    }

    /// Sets the code: letters, digits, `.`, `_` and `-`, at most 128; others are left out.
    pub fn code(mut self, code: impl AsRef<str>) -> Self {
        self.error.code = Some(clean(code.as_ref()));
        self
    }

    /// Sets the detail, such as a backtrace.
    pub fn detail(mut self, detail: impl AsRef<str>) -> Self {
        self.error.detail = Some(clean(detail.as_ref()));
        self
    }

    /// Returns the wait that was asked for.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Retry(wait) => wait,
            Verdict::Permanent | Verdict::Undecodable => None,
        }
    }

    /// Returns the text.
    pub fn message(&self) -> &str {
        self.error.message.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the texts: they may quote the message, and Debug ends up in logs.
        f.debug_struct("Failure")
            .field("class", &self.error.class)
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}

// Failure itself is no `std::error::Error`: else this would overlap with the conversion from itself.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut detail = String::new();
        let mut source = error.source();
        while let Some(cause) = source {
            detail.push_str(&format!("caused by: {cause}\n"));
            source = cause.source();
        }
        let failure = Self::new(error.to_string()).class(std::any::type_name::<E>());
        if detail.is_empty() { failure } else { failure.detail(detail.trim_end()) }
    }
}

/// Cuts a text on a character boundary and takes out what `jsonb` cannot store, so that recording never fails.
pub(crate) fn clean(text: &str) -> String {
    let cut = if text.len() <= LONGEST { Cow::Borrowed(text) } else { Cow::Owned(cut_text(text)) };
    cut.replace('\0', "\u{FFFD}")
}

fn cut_text(text: &str) -> String {
    let end = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_type_text_and_causes() {
        let error = "x".parse::<u8>().expect_err("x is no number");

        let failure = Failure::from(error);

        assert_eq!(failure.error.class.as_deref(), Some("core::num::error::ParseIntError"));
        assert_eq!(failure.message(), "invalid digit found in string");
    }

    #[test]
    fn long_texts_are_cut_on_a_character() {
        let failure = Failure::new("ä".repeat(LONGEST));

        assert!(failure.message().ends_with('…'));
        assert!(failure.message().len() <= LONGEST + '…'.len_utf8());
    }

    #[test]
    fn nul_is_replaced() {
        assert_eq!(Failure::new("a\0b").message(), "a\u{FFFD}b");
    }

    #[test]
    fn debug_shows_no_text() {
        assert!(!format!("{:?}", Failure::new("S3CRET").detail("S3CRET")).contains("S3CRET"));
    }
}

//! How a run ended, in the words of the database and in those of the log.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::timeout;
use vtq::{CancelCause, Context, Failure, Outcome};

/// The most characters that a dead letter keeps of an error's message.
const MESSAGE: usize = 1000;
/// How long a message is put off whose command could not be started, and how long its slot is kept before that.
const NOT_STARTED: Duration = Duration::from_secs(10);
const CALM: Duration = Duration::from_secs(1);

/// What a handler says, and the word for it in the log.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    /// Names the kind of the failure. It never quotes an error's text, which may quote the message.
    pub(super) why: Option<String>,
    /// Something is wrong that is not the message's fault.
    pub(super) is_alarm: bool,
}

impl Ended {
    pub(super) fn done() -> Self {
        Self { outcome: Outcome::Done, why: None, is_alarm: false }
    }

    pub(super) fn failed(why: impl Into<String>, failure: Failure) -> Self {
        Self::other(why, Outcome::Failed(failure))
    }

    pub(super) fn other(why: impl Into<String>, outcome: Outcome) -> Self {
        Self { outcome, why: Some(why.into()), is_alarm: false }
    }

    /// A run that was told to end.
    ///
    /// Whatever the command said afterwards does not count: many exit with 0 when they are asked to stop, which does
    /// not mean that the message was handled. It may run twice, but it is never lost.
    pub(super) fn cancelled(cause: CancelCause) -> Self {
        // As a failure: the engine knows these causes, and gives back or records as timed out by itself.
        match cause {
            CancelCause::Shutdown => Self::failed("interrupted", Failure::new("interrupted by shutdown")),
            CancelCause::TimedOut => Self::failed("timed out", Failure::new("timed out")),
            // No failure, which would be written down as one that came late: it ended because we ended it.
            _ => Self::other("lease lost", Outcome::Released { reason: Some("lease lost".to_owned()) }),
        }
    }

    /// A command that could not be started is no fault of the message, so this does not count as an attempt.
    ///
    /// It keeps its slot for a moment: else a machine that is out of processes would see its whole backlog fly by.
    pub(super) async fn not_started(error: &std::io::Error, context: &Context) -> Self {
        let reason = format!("the command cannot be started: {error}");
        let _ = timeout(CALM, context.until_cancelled()).await;
        let outcome = Outcome::Deferred { delay: NOT_STARTED, reason: Some(reason.clone()) };
        Self { outcome, why: Some(reason), is_alarm: true }
    }
}

/// Names how a process ended: a class for people, a code for machines.
pub(super) fn name(status: ExitStatus) -> (String, String) {
    if let Some(code) = status.code() {
        return (format!("exit {code}"), format!("exit-{code}"));
    }
    let number = status.signal().unwrap_or_default();
    match Signal::try_from(number) {
        Ok(signal) => (format!("signal {number} ({signal})"), signal.as_str().to_owned()),
        Err(_) => (format!("signal {number}"), format!("signal-{number}")),
    }
}

/// Splits the end of a long text into a message and, if that does not hold all of it, a detail.
///
/// The last words are the ones that matter (a traceback ends with its error), and a dead letter keeps only the
/// beginning of a message.
pub(super) fn split_tail(text: &str) -> (String, Option<&str>) {
    let length = text.chars().count();
    if length <= MESSAGE {
        return (text.to_owned(), None);
    }
    let end: String = text.chars().skip(length - (MESSAGE - 1)).collect();
    (format!("…{end}"), Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_named_by_its_code_or_its_signal() {
        let name = |raw| name(ExitStatus::from_raw(raw));

        assert_eq!(name(3 << 8), ("exit 3".into(), "exit-3".into()));
        assert_eq!(name(9), ("signal 9 (SIGKILL)".into(), "SIGKILL".into()));
        assert_eq!(name(34), ("signal 34".into(), "signal-34".into()));
    }

    #[test]
    fn a_long_tail_keeps_its_end_in_the_message_and_all_in_the_detail() {
        let text = format!("{}last words", "ä".repeat(2000));

        let (message, detail) = split_tail(&text);

        assert_eq!(message.chars().count(), MESSAGE);
        assert!(message.starts_with("…ä") && message.ends_with("last words"), "{message}");
        assert_eq!(detail, Some(text.as_str()));
        assert_eq!(split_tail("short"), ("short".into(), None));
    }
}

//! How a run can end.

use std::fmt;
use std::time::Duration;

use crate::failure::Failure;

/// How a handler says that a run ended. Whatever is not said here, the engine sees by itself: a panic, a run past
/// its time, a lost lease, a shutdown.
///
/// `Debug` shows no reason and no text of a failure: they may quote the message.
#[derive(Clone)]
#[non_exhaustive]
pub enum Outcome {
    /// The message is handled: it is archived or deleted.
    Done,
    /// The run failed: a retry after the backoff or the failure's own wait, or the dead letters.
    Failed(Failure),
    /// Not now: due again after `delay`, and the run does not count as an attempt.
    Deferred {
        /// How long from now.
        delay: Duration,
        /// Why; kept with the attempt.
        reason: Option<String>,
    },
    /// Given back at once: somebody else may run it, and the run does not count as an attempt.
    Released {
        /// Why; kept with the attempt.
        reason: Option<String>,
    },
}

impl Outcome {
    /// Defers without a reason.
    pub fn defer(delay: Duration) -> Self {
        Self::Deferred { delay, reason: None }
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("Done"),
            Self::Failed(failure) => f.debug_tuple("Failed").field(failure).finish(),
            Self::Deferred { delay, .. } => {
                f.debug_struct("Deferred").field("delay", delay).finish_non_exhaustive()
            }
            Self::Released { .. } => f.debug_struct("Released").finish_non_exhaustive(),
        }
    }
}

/// What a handler may return: nothing, an [`Outcome`], or a `Result` of either with any error.
pub trait IntoOutcome {
    /// Says how the run ended.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl<T: IntoOutcome, E: Into<Failure>> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(value) => value.into_outcome(),
            Err(error) => Outcome::Failed(error.into()),
        }
    }
}

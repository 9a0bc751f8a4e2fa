//! What a message asks its handler to do.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vtq::{Context, Failure, Message, Outcome};

/// The body of a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Work {
    /// How long the run takes.
    pub(crate) takes_ms: u64,
    pub(crate) fate: Fate,
}

/// How the run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fate {
    Done,
    /// The first attempt fails, the next does not.
    Retry,
    /// Every attempt fails, with the queue's backoff between them.
    Broken,
    /// It goes to the dead letters.
    Permanent,
}

/// Does it; a run that is told to end early does so at once.
pub(crate) async fn perform(message: &Message, context: &Context) -> Outcome {
    let work: Work = message.decode().expect("the suite sends nothing else");
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(work.takes_ms)) => {}
        _ = context.until_cancelled() => {}
    }
    match work.fate {
        Fate::Retry if message.attempt == 1 => {
            Outcome::Failed(Failure::new("the first attempt fails").retry_after(Duration::from_millis(50)))
        }
        Fate::Broken => Outcome::Failed(Failure::new("every attempt fails")),
        Fate::Permanent => Outcome::Failed(Failure::permanent("meant to die")),
        Fate::Done | Fate::Retry => Outcome::Done,
    }
}

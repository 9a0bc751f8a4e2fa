//! Keys of messages: what a send says about them, and what it is told.

use crate::message::MessageId;

/// When a unique key is free again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UniqueUntil {
    /// When its message is acked, dead-lettered, cancelled or purged.
    Done,
    /// When a handler first starts. A retry that waits has it again, until a newer message takes it: then the retry
    /// is superseded, and goes to the archive.
    Started,
}

impl UniqueUntil {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Started => "started",
        }
    }
}

/// What becomes of a send whose unique key is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnConflict {
    /// Nothing is sent.
    Skip,
    /// The message that has the key takes the new payload and headers, and keeps its place; with a delay, it is due
    /// that long from now. One that is running is left alone, and nothing is sent. One that waits for a retry is
    /// superseded.
    Replace,
    /// [`ErrorKind::KeyTaken`](crate::ErrorKind::KeyTaken); of a batch, nothing is sent.
    Error,
}

impl OnConflict {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Replace => "replace",
            Self::Error => "error",
        }
    }
}

/// What became of a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendReport {
    /// The message: the new one, or the one that has the unique key.
    pub id: MessageId,
    /// Whether it is new.
    pub outcome: SendOutcome,
}

/// Whether a message that was sent is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendOutcome {
    /// It is new.
    Sent,
    /// It is new, and an older one with its key, which was waiting for a retry, has left for the archive.
    Superseded,
    /// It was not sent: another message has its key.
    Skipped,
    /// It was not sent: the message that has its key was waiting, and has its payload now.
    Replaced,
}

impl SendOutcome {
    /// Tells whether there is a new message.
    pub fn is_new(self) -> bool {
        matches!(self, Self::Sent | Self::Superseded)
    }

    /// Returns the word for it: `sent`, `superseded`, `skipped` or `replaced`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Superseded => "superseded",
            Self::Skipped => "skipped",
            Self::Replaced => "replaced",
        }
    }

    pub(super) fn of(text: &str) -> Option<Self> {
        [Self::Sent, Self::Superseded, Self::Skipped, Self::Replaced]
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
    }
}

/// The keys of one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) unique: Option<String>,
    pub(super) group: Option<String>,
    pub(super) exclusive: Option<String>,
}

//! What a worker tells about itself, for users' logs and for tests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::handler::CancelCause;
use crate::message::{Lease, MessageId};
use crate::name::QueueName;

/// Something that happened in a worker. None holds a payload, a header or a password.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// The worker began.
    Started {
        /// Host, pid and a random part.
        worker_id: Arc<str>,
    },
    /// A handler was started.
    RunStarted {
        /// The queue.
        queue: QueueName,
        /// The delivery.
        lease: Lease,
        /// The attempt that it is.
        attempt: i32,
    },
    /// A run ended, and the database has recorded how.
    Settled {
        /// The queue.
        queue: QueueName,
        /// The delivery.
        lease: Lease,
        /// The attempt that it was.
        attempt: i32,
        /// How it ended.
        ending: Ending,
        /// How long the handler ran.
        ran: Duration,
    },
    /// A lease was found gone: another delivery has happened, or the message was cancelled.
    LeaseLost {
        /// The queue.
        queue: QueueName,
        /// The message.
        id: MessageId,
    },
    /// A run was told to end early.
    Cancelled {
        /// The queue.
        queue: QueueName,
        /// The message.
        id: MessageId,
        /// Why.
        cause: CancelCause,
    },
    /// The database is away; told once, when it goes.
    DatabaseLost {
        /// Which part of the worker noticed: `fetch`, `settle` or `listen`.
        part: &'static str,
        /// What it said.
        error: String,
    },
    /// The database is back.
    DatabaseBack {
        /// Which part of the worker is connected again.
        part: &'static str,
        /// How long it was away.
        after: Duration,
    },
    /// The listener hears nothing: its connection broke, or a pooler swallows notifications. The worker polls.
    ListenerDeaf {
        /// Why.
        reason: String,
    },
    /// The listener hears again.
    ListenerHears,
    /// A queue cannot be served; told once, when it begins.
    QueueTrouble {
        /// The queue.
        queue: QueueName,
        /// What the database said.
        error: String,
    },
    /// A queue can be served again.
    QueueBack {
        /// The queue.
        queue: QueueName,
    },
    /// Retention and the like cannot run, and no waiting mends that; told once for a queue.
    MaintenanceRefused {
        /// The queue.
        queue: QueueName,
        /// What the database said: often that the worker's role does not own the tables.
        error: String,
    },
    /// A schedule sent a message.
    ScheduleFired {
        /// The schedule.
        name: String,
        /// The tick.
        tick_at: DateTime<Utc>,
        /// The message.
        id: MessageId,
    },
    /// A schedule cannot send; told once for each reason.
    ScheduleTrouble {
        /// The schedule.
        name: String,
        /// Why.
        error: String,
    },
    /// A schedule can send again.
    ScheduleBack {
        /// The schedule.
        name: String,
    },
    /// The worker's role may not look at schedules: others have to fire them. Told once.
    SchedulesRefused {
        /// What the database said.
        error: String,
    },
    /// Messages moved to the dead letters because they could no longer run.
    Swept {
        /// The queue.
        queue: QueueName,
        /// How many.
        dead: u64,
    },
    /// The worker waits for a notification, because there is nothing to do.
    Asleep,
    /// The worker takes no more messages and waits for those that run.
    Stopping {
        /// How many handlers are running.
        running: usize,
    },
}

/// How a run ended, in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Ending {
    /// Handled.
    Done,
    /// Failed, and due again.
    Retried,
    /// Given back for later, or at once; it does not count.
    GivenBack,
    /// Dead: no run is left, or a retry cannot mend it.
    Dead,
    /// Failed or given back, and in the archive: a newer message with its unique key goes before it.
    Superseded,
    /// The lease was gone when it was to be settled; nothing was recorded.
    LeaseLost,
    /// The connection broke before the answer came, and when asked again the lease was gone: the first try has settled
    /// it, or somebody else has it.
    Unknown,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Retried => "retry",
            Self::GivenBack => "given back",
            Self::Dead => "dead",
            Self::Superseded => "superseded",
            Self::LeaseLost => "lease lost",
            Self::Unknown => "unknown",
        })
    }
}

/// Where events go.
#[derive(Clone)]
pub(super) struct Events(Arc<dyn Fn(&WorkerEvent) + Send + Sync>);

impl Events {
    pub(super) fn new(hook: impl Fn(&WorkerEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    pub(super) fn tell(&self, event: WorkerEvent) {
        (self.0)(&event);
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

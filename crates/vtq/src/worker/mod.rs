//! The worker: one engine (fetch, heartbeat, settle, listen) on a thread of its own, handlers on the caller's runtime.

mod batch;
mod builder;
mod connection;
mod engine;
mod event;
mod fetch;
mod flight;
mod handler;
mod health;
mod heartbeat;
mod listen;
mod look;
mod maintain;
mod once;
mod outcome;
mod plan;
mod run;
mod schedule;
mod settle;
mod sleep;
mod slots;
mod suspect;
mod turn;

pub use batch::batch_fn;
pub use builder::{Capsule, WakeUp, WorkerBuilder};
pub use event::{Ending, WorkerEvent};
pub use handler::{CancelCause, Context, Handler, handler_fn, json};
pub use outcome::{IntoOutcome, Outcome};

use std::future::Future;

use crate::connect::Vtq;
use crate::error::Result;

/// Reads messages, runs handlers for them, and settles what they say. Made by [`Worker::builder`].
///
/// # Examples
/// ```no_run
/// use vtq::{Capsule, Vtq, Worker, json};
///
/// #[derive(serde::Deserialize)]
/// struct Order { id: u64 }
///
/// # async fn example() -> vtq::Result<()> {
/// let vtq = Vtq::connect("postgres://localhost/shop").await?;
/// let orders = Capsule::new(["orders"], json(|order: Order, _| async move { println!("{}", order.id) }));
/// let worker = Worker::builder(&vtq).capsule(orders.concurrency(16)).build()?;
/// worker.run(std::future::pending()).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Worker {
    builder: WorkerBuilder,
}

/// How a worker came to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Runs that ended as done.
    pub done: u64,
    /// Runs that failed and are due again.
    pub retried: u64,
    /// Deliveries given back: deferred, released, or not started when the worker stopped.
    pub given_back: u64,
    /// Messages that went to the dead letters.
    pub dead: u64,
    /// Leases that were lost.
    pub lost: u64,
    /// Runs that ended after their lease was lost: somebody else may have run the same message.
    pub late: u64,
    /// Handlers that were still running when the drain timeout ended, and whose messages were given back.
    pub interrupted: u64,
}

impl Worker {
    /// Starts to say what a worker is to do.
    pub fn builder(vtq: &Vtq) -> WorkerBuilder {
        WorkerBuilder::new(vtq.clone())
    }

    /// Runs until `shutdown` ends, and then until the handlers that run have ended or the drain timeout has.
    ///
    /// The database may be away at the start and at any time: the worker backs off, and carries on when it is back.
    ///
    /// # Errors
    /// Only for what no waiting can mend: a configuration that cannot work, a queue that does not exist at the start,
    /// a schema that is not the one of this library.
    /// # Cancel safety
    /// Dropping the future ends the worker at once: its messages come back when their visibility timeout lapses.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<Stopped> {
        engine::run(self.builder, shutdown).await
    }
}

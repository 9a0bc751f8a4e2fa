//! What a worker is told before it runs.

use std::sync::Arc;
use std::time::Duration;

use super::Worker;
use super::event::{Events, WorkerEvent};
use super::handler::{AnyHandler, Handler};
use crate::connect::Vtq;
use crate::error::{Error, Result};
use crate::name::QueueName;

/// Some queues that share a handler and a number of slots; inside it the queues go in order of priority.
#[derive(Debug, Clone)]
pub struct Capsule {
    pub(super) queues: Vec<String>,
    pub(super) concurrency: usize,
    pub(super) handler: Arc<dyn AnyHandler>,
}

impl Capsule {
    /// Makes a capsule: a queue is read only while those named before it are empty. Concurrency 10.
    pub fn new<Q: AsRef<str>>(queues: impl IntoIterator<Item = Q>, handler: impl Handler) -> Self {
        let queues = queues.into_iter().map(|queue| queue.as_ref().to_owned()).collect();
        Self { queues, concurrency: 10, handler: Arc::new(handler) }
    }

    /// Sets how many handlers may run at once, 1 to 10000. Default: 10.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }
}

/// How a worker that has nothing to do learns that there is something.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum WakeUp {
    /// By LISTEN on a connection of its own; the default.
    #[default]
    Listen,
    /// By LISTEN through another address: a transaction pooler cannot carry LISTEN.
    ListenAt(Vtq),
    /// By polling alone.
    Poll,
}

/// What a worker is told before it runs. Made by [`Worker::builder`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct WorkerBuilder {
    pub(super) vtq: Vtq,
    pub(super) capsules: Vec<Capsule>,
    pub(super) settings: Settings,
}

/// The numbers behind a worker.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) visibility_timeout: Option<Duration>,
    pub(super) heartbeat: Option<Duration>,
    pub(super) drain_timeout: Duration,
    pub(super) grace: Duration,
    pub(super) slowest_poll: Option<Duration>,
    pub(super) wake_up: WakeUp,
    pub(super) is_once: bool,
    pub(super) events: Events,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            visibility_timeout: None,
            heartbeat: None,
            drain_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            slowest_poll: None,
            wake_up: WakeUp::default(),
            is_once: false,
            events: Events::default(),
        }
    }
}

impl WorkerBuilder {
    pub(super) fn new(vtq: Vtq) -> Self {
        Self { vtq, capsules: Vec::new(), settings: Settings::default() }
    }

    /// Adds queues with their handler and their slots.
    pub fn capsule(mut self, capsule: Capsule) -> Self {
        self.capsules.push(capsule);
        self
    }

    /// Sets how long a read hides its messages, 1 ms to 12 h. Default: each queue's, which is 30 s if not set.
    pub fn visibility_timeout(mut self, length: Duration) -> Self {
        self.settings.visibility_timeout = Some(length);
        self
    }

    /// Sets how often leases are lengthened. Default: every third of the visibility timeout, and never less often.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.settings.heartbeat = Some(interval);
        self
    }

    /// Sets how long running handlers may go on after the shutdown began. Default: 30 s.
    pub fn drain_timeout(mut self, limit: Duration) -> Self {
        self.settings.drain_timeout = limit;
        self
    }

    /// Sets how long a cancelled handler has to end by itself before it is dropped. Default: 10 s.
    pub fn grace(mut self, limit: Duration) -> Self {
        self.settings.grace = limit;
        self
    }

    /// Sets the slowest poll of a worker that sleeps: the most a missed notification can cost. Default: 30 s while
    /// the listener hears, 1 s without one.
    pub fn slowest_poll(mut self, interval: Duration) -> Self {
        self.settings.slowest_poll = Some(interval);
        self
    }

    /// Sets how the worker wakes up. Default: by LISTEN on a connection of its own.
    pub fn wake_up(mut self, wake_up: WakeUp) -> Self {
        self.settings.wake_up = wake_up;
        self
    }

    /// Makes the worker stop by itself once nothing is ready and nothing runs. What a limit of the queue holds back stays.
    pub fn once(mut self) -> Self {
        self.settings.is_once = true;
        self
    }

    /// Sets what is called at each event. It runs on the engine's thread, and must not block.
    pub fn on_event(mut self, hook: impl Fn(&WorkerEvent) + Send + Sync + 'static) -> Self {
        self.settings.events = Events::new(hook);
        self
    }

    /// Checks it all.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) names the setting, the value and the rule.
    pub fn build(self) -> Result<Worker> {
        if self.capsules.is_empty() {
            return Err(Error::config("a worker needs at least one queue"));
        }
        let mut seen: Vec<QueueName> = Vec::new();
        for capsule in &self.capsules {
            if capsule.queues.is_empty() {
                return Err(Error::config("a capsule needs at least one queue"));
            }
            if !(1..=10_000).contains(&capsule.concurrency) {
                return Err(Error::config(format!(
                    "concurrency {} of `{}` is not allowed: it must be from 1 to 10000",
                    capsule.concurrency,
                    capsule.queues.join(", ")
                )));
            }
            for queue in &capsule.queues {
                let name = QueueName::new(queue)?;
                if seen.contains(&name) {
                    return Err(Error::config(format!("queue `{name}` is given twice")));
                }
                seen.push(name);
            }
        }
        let settings = &self.settings;
        let range = Duration::from_millis(1)..=Duration::from_secs(12 * 3600);
        if let Some(length) = settings.visibility_timeout.filter(|length| !range.contains(length)) {
            return Err(Error::config(format!(
                "visibility timeout {length:?} is not allowed: it must be from 1 ms to 12 h"
            )));
        }
        if settings.heartbeat.is_some_and(|interval| interval.is_zero()) {
            return Err(Error::config("heartbeat 0 s is not allowed: it must be longer than that"));
        }
        if let Some(poll) = settings.slowest_poll.filter(|poll| *poll < Duration::from_millis(10)) {
            return Err(Error::config(format!(
                "slowest poll {poll:?} is not allowed: it must be at least 10 ms"
            )));
        }
        Ok(Worker { builder: self })
    }
}

/// Checks a heartbeat against a visibility timeout, once the queue has said what its timeout is.
pub(super) fn check_heartbeat(
    queue: &QueueName,
    heartbeat: Duration,
    visibility_timeout: Duration,
) -> Result<()> {
    if heartbeat * 3 > visibility_timeout {
        return Err(Error::config(format!(
            "heartbeat {heartbeat:?} is too slow for queue `{queue}`, whose visibility timeout is \
             {visibility_timeout:?}: it must be a third of that or less"
        )));
    }
    Ok(())
}

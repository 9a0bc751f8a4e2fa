//! What the parts of the engine share.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::Stopped;
use super::builder::{Settings, WakeUp, WorkerBuilder};
use super::event::Events;
use super::flight::Flights;
use super::health::Health;
use super::settle::Ended;
use super::slots::Slots;
use super::turn::Turns;
use crate::connect::Vtq;
use crate::error::Result;
use crate::name::QueueName;

/// So many workers read a queue no more often together than one does alone; more of them, each an eighth as often.
const MOST_WHO_TAKE_TURNS: u32 = 8;
/// The engine's shared state.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) vtq: Vtq,
    pub(super) worker_id: Arc<str>,
    pub(super) settings: Settings,
    pub(super) events: Events,
    pub(super) queues: Vec<Served>,
    pub(super) capsules: Vec<Slots>,
    /// Where handlers run.
    pub(super) handlers: Handle,
    /// Held for moments, never while waiting for anything.
    pub(super) flights: Mutex<Flights>,
    pub(super) outcomes: mpsc::UnboundedSender<Ended>,
    /// There may be something to fetch.
    pub(super) stir: Notify,
    /// There may be room for more: runs ended.
    pub(super) freed: Notify,
    /// What this process settled is due again later, or lets another message run.
    pub(super) again: Notify,
    /// Outcomes were recorded: a fetcher that paused for them has room again.
    pub(super) settled: Notify,
    /// A schedule was added or resumed.
    pub(super) replan: Notify,
    /// Take no more messages.
    pub(super) stop: CancellationToken,
    /// Everything is settled that will be: the settler and the listener end.
    pub(super) close: CancellationToken,
    pub(super) health: Health,
    pub(super) turns: Turns,
    pub(super) tally: Tally,
    pub(super) last_claim: Mutex<Option<Instant>>,
    /// This worker's number in the database.
    number: AtomicI32,
    /// Whether messages lie before the fetcher's floors that this process put there.
    rewind: AtomicBool,
    /// Whether the listener hears; nothing as long as it has not said.
    hearing: Mutex<Option<bool>>,
}

/// A queue that is served, and what it is set to.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) name: QueueName,
    pub(super) setting: Mutex<QueueSetting>,
}

/// What a queue is set to, as far as the engine needs it.
#[derive(Debug, Clone, Default)]
pub(super) struct QueueSetting {
    pub(super) visibility_timeout: Duration,
    pub(super) priorities: Vec<i16>,
    /// How many workers serve it.
    pub(super) workers: u32,
    /// Whether it has a `max_in_flight`.
    pub(super) is_capped: bool,
}

/// What a worker has done, in numbers.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) done: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) given_back: AtomicU64,
    pub(super) dead: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) interrupted: AtomicU64,
    pub(super) late: AtomicU64,
}

impl Plan {
    pub(super) fn new(
        builder: WorkerBuilder,
        handlers: Handle,
        outcomes: mpsc::UnboundedSender<Ended>,
        stop: CancellationToken,
    ) -> Result<Self> {
        let WorkerBuilder { vtq, capsules, settings } = builder;
        let mut queues: Vec<Served> = Vec::new();
        let mut slots: Vec<Slots> = Vec::new();
        for capsule in capsules {
            let mut places = Vec::new();
            for queue in &capsule.queues {
                places.push(queues.len());
                queues.push(Served { name: QueueName::new(queue)?, setting: Mutex::default() });
            }
            slots.push(Slots::new(places, capsule.concurrency, capsule.handler));
        }
        let events = settings.events.clone();
        Ok(Self {
            vtq,
            worker_id: identity().into(),
            health: Health::new(events.clone()),
            events,
            settings,
            queues,
            capsules: slots,
            handlers,
            flights: Mutex::default(),
            outcomes,
            stir: Notify::new(),
            freed: Notify::new(),
            again: Notify::new(),
            settled: Notify::new(),
            replan: Notify::new(),
            stop,
            close: CancellationToken::new(),
            turns: Turns::default(),
            tally: Tally::default(),
            last_claim: Mutex::default(),
            number: AtomicI32::new(0),
            rewind: AtomicBool::new(false),
            hearing: Mutex::default(),
        })
    }

    /// Has the fetcher read from the front next.
    pub(super) fn rewind(&self) {
        self.rewind.store(true, Ordering::Release);
        self.stir.notify_one();
    }

    pub(super) fn take_rewind(&self) -> bool {
        self.rewind.swap(false, Ordering::AcqRel)
    }

    /// Takes note of the number that the database gives this worker.
    pub(super) fn set_number(&self, number: i32) {
        self.number.store(number, Ordering::Release);
    }

    pub(super) fn number(&self) -> i32 {
        self.number.load(Ordering::Acquire)
    }

    pub(super) fn set_hearing(&self, hears: bool) {
        *lock(&self.hearing) = Some(hears);
    }

    pub(super) fn is_hearing(&self) -> bool {
        *lock(&self.hearing) == Some(true)
    }

    /// How this worker learns of work when it is idle, as `vtq._worker` has it.
    pub(super) fn wake_up(&self) -> Option<&'static str> {
        match (&self.settings.wake_up, *lock(&self.hearing)) {
            (WakeUp::Poll, _) => Some("polling"),
            (_, Some(true)) => Some("listening"),
            (_, Some(false)) => Some("deaf"),
            (_, None) => None,
        }
    }

    pub(super) fn flights(&self) -> MutexGuard<'_, Flights> {
        lock(&self.flights)
    }

    pub(super) fn queue_names(&self) -> Vec<&str> {
        self.queues.iter().map(|served| served.name.as_str()).collect()
    }

    /// How many workers serve this queue, as far as is known.
    pub(super) fn workers_of(&self, queue: usize) -> u32 {
        lock(&self.queues[queue].setting).workers
    }

    /// How many workers take turns at reading this queue.
    pub(super) fn turns_of(&self, queue: usize) -> u32 {
        self.workers_of(queue).clamp(1, MOST_WHO_TAKE_TURNS)
    }

    /// For how many turns a capsule of these queues fetches ahead. Where only so many may be in flight, what waits here
    /// would keep other workers from running theirs.
    pub(super) fn turns_ahead(&self, queues: &[usize]) -> u32 {
        if queues.iter().any(|&queue| lock(&self.queues[queue].setting).is_capped) {
            return 0;
        }
        self.most_turns(queues.iter().copied())
    }

    /// How many workers take turns at the one of these queues that has the most.
    pub(super) fn most_turns(&self, queues: impl Iterator<Item = usize>) -> u32 {
        queues.map(|queue| self.turns_of(queue)).max().unwrap_or(1)
    }

    /// How long a lease of this queue lasts from a read or a heartbeat on.
    pub(super) fn visibility_timeout(&self, queue: usize) -> Duration {
        self.settings
            .visibility_timeout
            .unwrap_or_else(|| lock(&self.queues[queue].setting).visibility_timeout)
    }

    /// How often leases are lengthened: a third of the shortest visibility timeout, if nothing else is set.
    pub(super) fn heartbeat(&self) -> Duration {
        let shortest = (0..self.queues.len()).map(|queue| self.visibility_timeout(queue)).min();
        let third = shortest.unwrap_or(Duration::from_secs(30)) / 3;
        self.settings.heartbeat.map_or(third, |set| set.min(third)).max(Duration::from_millis(1))
    }
}

impl Tally {
    pub(super) fn stopped(&self) -> Stopped {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Stopped {
            done: read(&self.done),
            retried: read(&self.retried),
            given_back: read(&self.given_back),
            dead: read(&self.dead),
            lost: read(&self.lost),
            interrupted: read(&self.interrupted),
            late: read(&self.late),
        }
    }
}

/// Host, pid and a random part: a process that takes the place of another is not taken for it.
fn identity() -> String {
    let host = whoami::hostname().unwrap_or_else(|_| "unknown".into());
    format!("{host}:{}:{:08x}", std::process::id(), rand::random::<u32>())
}

/// Counts one.
pub(super) fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

/// Locks, also after a panic elsewhere: nothing behind these locks is left half changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

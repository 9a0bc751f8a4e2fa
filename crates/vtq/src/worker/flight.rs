//! The messages that this process holds: from the read that leased them to the statement that settled them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::handler::{Cancel, CancelCause};
use crate::message::{Lease, MessageId};

/// A message that this process holds.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) lease: Lease,
    /// With the lease it tells a message from one of a queue that was made anew under the same name.
    pub(super) enqueued_at: DateTime<Utc>,
    pub(super) attempt: i32,
    pub(super) cancel: Cancel,
    pub(super) phase: Phase,
    /// Whether the database knows that the run has started.
    pub(super) is_marked: bool,
    /// Whether others may wait for its end.
    pub(super) has_lane: bool,
    /// Until when the lease lasts at the least, by this process's clock.
    pub(super) held_until: Instant,
}

/// How far a message has come in this process.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    /// Leased, and not started.
    Waiting,
    /// With a handler, which must have ended at `overdue`, grace included.
    Running { since: Instant, overdue: Option<Instant> },
    /// Ended; the database has yet to record it.
    Ending,
}

/// What a delivery found when it was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    New,
    /// An older delivery of the message, now lost.
    Overtook,
    /// Itself.
    Held,
    /// A message of a queue that is gone. Its run, which goes on, would pass for one of this delivery.
    Stranger,
}

/// All of them, by queue (its place in the plan) and message.
#[derive(Debug, Default)]
pub(super) struct Flights {
    all: HashMap<(usize, MessageId), Flight>,
    /// How many there are of each queue.
    counts: HashMap<usize, usize>,
}

impl Flights {
    /// Adds a delivery. An older one of the same message has lost its lease, and is cancelled.
    ///
    /// The same lease once more is a claim that a crash of the server has undone, and that has come back to this
    /// process: the run that holds it goes on, and must not be joined by another.
    ///
    /// So is one of another message with the same lease; the queue was dropped and made anew. The new delivery must not
    /// run under a lease that the old run bears as well: it ends here, and the caller gives it back.
    pub(super) fn begin(&mut self, queue: usize, mut flight: Flight) -> Begun {
        let key = (queue, flight.lease.id);
        if let Some(older) = self.all.get(&key).filter(|older| older.lease == flight.lease) {
            if older.enqueued_at == flight.enqueued_at {
                return Begun::Held;
            }
            older.cancel.give(CancelCause::LeaseLost);
            flight.phase = Phase::Ending;
            self.all.insert(key, flight);
            return Begun::Stranger;
        }
        match self.all.insert(key, flight) {
            Some(older) => {
                older.cancel.give(CancelCause::LeaseLost);
                Begun::Overtook
            }
            None => {
                *self.counts.entry(queue).or_default() += 1;
                Begun::New
            }
        }
    }

    /// Marks a delivery as started; false when its lease is lost or given back, or may have lapsed while it waited.
    pub(super) fn start(&mut self, queue: usize, lease: Lease, overdue: Option<Duration>) -> bool {
        let now = Instant::now();
        let Some(flight) = self.held(queue, lease) else { return false };
        if flight.held_until <= now || !matches!(flight.phase, Phase::Waiting) {
            return false;
        }
        flight.phase =
            Phase::Running { since: now, overdue: overdue.and_then(|limit| now.checked_add(limit)) };
        true
    }

    /// Marks a delivery as ended; false when its lease is lost or something else has ended it.
    pub(super) fn end(&mut self, queue: usize, lease: Lease) -> bool {
        match self.held(queue, lease) {
            Some(flight) if !matches!(flight.phase, Phase::Ending) => {
                flight.phase = Phase::Ending;
                true
            }
            _ => false,
        }
    }

    /// Removes a delivery; `None` when it is not held any more.
    pub(super) fn remove(&mut self, queue: usize, lease: Lease) -> Option<Flight> {
        self.held(queue, lease)?;
        if let Some(count) = self.counts.get_mut(&queue) {
            *count -= 1;
        }
        self.all.remove(&(queue, lease.id))
    }

    /// Returns a delivery that is held.
    pub(super) fn get(&self, queue: usize, lease: Lease) -> Option<&Flight> {
        self.all.get(&(queue, lease.id)).filter(|flight| flight.lease == lease)
    }

    fn held(&mut self, queue: usize, lease: Lease) -> Option<&mut Flight> {
        self.all.get_mut(&(queue, lease.id)).filter(|flight| flight.lease == lease)
    }

    /// Returns the leases of a queue, each with whether its run has started.
    pub(super) fn leases(&self, queue: usize) -> Vec<(Lease, bool)> {
        let of_queue = self.all.iter().filter(|((of, _), _)| *of == queue);
        of_queue.map(|(_, flight)| (flight.lease, !matches!(flight.phase, Phase::Waiting))).collect()
    }

    /// Returns those runs of a queue that have gone on for `least` and that the database does not know of.
    pub(super) fn unmarked(&self, queue: usize, least: Duration) -> Vec<(Lease, bool)> {
        let is_due = |flight: &Flight| match flight.phase {
            Phase::Running { since, .. } => !flight.is_marked && since.elapsed() >= least,
            _ => false,
        };
        let of_queue = self.all.iter().filter(|((of, _), _)| *of == queue);
        of_queue.filter(|(_, flight)| is_due(flight)).map(|(_, flight)| (flight.lease, true)).collect()
    }

    /// Notes that leases last until an instant.
    pub(super) fn extended(&mut self, queue: usize, leases: &[(Lease, bool)], until: Instant) {
        for (lease, has_started) in leases {
            if let Some(flight) = self.held(queue, *lease) {
                flight.held_until = until;
                flight.is_marked |= has_started;
            }
        }
    }

    /// Returns those that run past their time and their grace: their handlers do not react.
    pub(super) fn overdue(&self, now: Instant) -> Vec<(usize, Lease, Duration)> {
        let late = |flight: &Flight| match flight.phase {
            Phase::Running { since, overdue: Some(overdue) } if overdue <= now => Some(now - since),
            _ => None,
        };
        self.all
            .iter()
            .filter_map(|((queue, _), flight)| Some((*queue, flight.lease, late(flight)?)))
            .collect()
    }

    /// Returns those with a handler.
    pub(super) fn running(&self) -> Vec<(usize, Lease, Cancel)> {
        self.all
            .iter()
            .filter(|(_, flight)| matches!(flight.phase, Phase::Running { .. }))
            .map(|((queue, _), flight)| (*queue, flight.lease, flight.cancel.clone()))
            .collect()
    }

    /// Returns those that have not started.
    pub(super) fn waiting(&self) -> Vec<(usize, Lease, i32)> {
        self.all
            .iter()
            .filter(|(_, flight)| matches!(flight.phase, Phase::Waiting))
            .map(|((queue, _), flight)| (*queue, flight.lease, flight.attempt))
            .collect()
    }

    /// Returns how many of these queues are held.
    pub(super) fn of(&self, queues: &[usize]) -> usize {
        queues.iter().filter_map(|queue| self.counts.get(queue)).sum()
    }

    /// Returns how many are held.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

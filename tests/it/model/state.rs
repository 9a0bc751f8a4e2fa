//! The reference model: what a queue is, in the fewest words. It shares no formula with the SQL: a lease is there or
//! not, an attempt is a count of runs, and an open transaction is a layer over what is committed.

use std::collections::{BTreeMap, BTreeSet};

/// The levels of the queue, the one served first in front.
pub(super) const LEVELS: [i16; 2] = [9, 0];

/// So many deliveries that never began, and a message is dead, however many attempts it has.
const GUARD: i32 = 5;

/// Which session.
pub(super) type Who = usize;

/// A delivery: message and `read_ct`.
pub(super) type Ticket = (i64, i32);

/// An instant: the hour of the model's clock, and what orders the instants of one hour, which differ by the real time
/// between two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Instant {
    pub(super) hour: i64,
    nth: u64,
}

impl Instant {
    pub(super) fn plus(self, hours: i64) -> Self {
        Self { hour: self.hour + hours, ..self }
    }
}

/// The right to settle, while nobody else has taken it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) until: Instant,
    pub(super) is_started: bool,
}

/// Where a message is. It is in one place only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Live,
    Dead { since: Instant, reason: &'static str, attempts: i32 },
    Done,
    Cancelled,
    Purged,
}

/// How a delivery ended that did not succeed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) attempt: i32,
    pub(super) outcome: &'static str,
    pub(super) due: Option<Instant>,
}

/// How long to wait after failed attempt n, in hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Backoff {
    /// 1, 2, 4, 4, ...: what the queue is set to.
    Doubling,
    Fixed(i64),
    /// Past the end, the last one.
    List(Vec<i64>),
}

impl Backoff {
    pub(super) fn after(&self, attempt: i32) -> i64 {
        match self {
            Self::Doubling => [1, 2, 4][(attempt.max(1) as usize - 1).min(2)],
            Self::Fixed(hours) => *hours,
            Self::List(hours) => hours[(attempt.max(1) as usize - 1).min(hours.len() - 1)],
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) place: Place,
    pub(super) level: i16,
    pub(super) due: Instant,
    pub(super) lease: Option<Lease>,
    /// Deliveries ever.
    pub(super) read_ct: i32,
    /// Of those, the ones that count as attempts of this trip.
    pub(super) spent: i32,
    /// Deliveries that lapsed before they began, since a run last told how it ended. They are no attempts, and yet held
    /// against the message: what kills its worker must not start more often than it has attempts.
    pub(super) unstarted: i32,
    pub(super) is_suspect: bool,
    pub(super) holder: Option<i32>,
    pub(super) own_limit: Option<i32>,
    pub(super) backoff: Backoff,
    pub(super) expires: Option<Instant>,
    pub(super) redrives: i32,
    pub(super) attempts: BTreeMap<i32, Attempt>,
}

/// What may happen to a live message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    InFlight,
    Ready,
    /// No run is left, and why.
    Doomed(&'static str),
}

impl Message {
    pub(super) fn limit(&self, of_queue: i32) -> i32 {
        self.own_limit.unwrap_or(of_queue)
    }

    pub(super) fn is_dead(&self) -> bool {
        matches!(self.place, Place::Dead { .. })
    }

    pub(super) fn has_lapsed(&self, now: Instant) -> bool {
        self.lease.is_some_and(|lease| lease.until <= now)
    }

    /// Whether the last delivery lapsed before its run began, and so is no attempt.
    pub(super) fn never_began(&self, now: Instant) -> bool {
        self.has_lapsed(now) && self.lease.is_some_and(|lease| !lease.is_started)
    }

    pub(super) fn state(&self, of_queue: i32, now: Instant) -> State {
        let never_began = self.never_began(now);
        if self.due > now {
            State::Waiting
        } else if self.lease.is_some() && !self.has_lapsed(now) {
            State::InFlight
        } else if self.spent + self.unstarted >= self.limit(of_queue)
            || never_began && self.unstarted + 1 >= GUARD
        {
            State::Doomed(match (self.has_lapsed(now), never_began) {
                (true, true) => "never_started",
                (true, false) => "worker_died",
                (false, _) => "attempts_exhausted",
            })
        } else if self.expires.is_some_and(|expires| expires <= now) {
            State::Doomed("expired")
        } else {
            State::Ready
        }
    }

    /// Writes down a delivery; what was written of a lapse gives way to the truth.
    pub(super) fn record(&mut self, outcome: &'static str, due: Option<Instant>) {
        let attempt = Attempt { attempt: self.spent, outcome, due };
        self.attempts.insert(self.read_ct, attempt);
    }

    /// Writes down that a delivery left no outcome, unless that is written. True when something was written.
    pub(super) fn record_lapse(&mut self, now: Instant, due: Option<Instant>) -> bool {
        let outcome = if self.never_began(now) { "never_started" } else { "abandoned" };
        let attempt = Attempt { attempt: self.spent, outcome, due };
        match self.attempts.get_mut(&self.read_ct) {
            None => {
                self.attempts.insert(self.read_ct, attempt);
                true
            }
            // Its worker said late that it had begun, and died then.
            Some(known) if known.outcome == "never_started" && outcome == "abandoned" => {
                *known = attempt;
                true
            }
            Some(_) => false,
        }
    }

    /// Ends the lease and gives the message its next due time.
    pub(super) fn requeue(&mut self, due: Instant, is_refunded: bool) {
        self.due = due;
        self.lease = None;
        self.spent -= i32::from(is_refunded);
        self.unstarted = 0;
        self.is_suspect = false;
    }
}

/// A place in the line that a worker remembers, for each level.
pub(super) type Floors = [Option<(Instant, i64)>; LEVELS.len()];

#[derive(Debug, Default)]
pub(super) struct Model {
    now: Instant,
    pub(super) limit: i32,
    pub(super) is_paused: bool,
    pub(super) last_id: i64,
    committed: BTreeMap<i64, Message>,
    /// What each open transaction has written, and so locked.
    open: BTreeMap<Who, BTreeMap<i64, Message>>,
    pub(super) floors: BTreeMap<Who, Floors>,
    /// Every delivery that was ever handed out.
    pub(super) tickets: Vec<Ticket>,
}

impl Model {
    pub(super) fn new(limit: i32) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Real time goes on between two things that happen.
    pub(super) fn tick(&mut self) {
        self.now.nth += 1;
    }

    pub(super) fn pass(&mut self, hours: i64) {
        self.now.hour += hours;
    }

    /// An instant as the database is asked for it: hours from now.
    pub(super) fn hours_until(&self, instant: Instant) -> i64 {
        instant.hour - self.now.hour
    }

    pub(super) fn begin(&mut self, who: Who) {
        self.open.insert(who, BTreeMap::new());
    }

    pub(super) fn end(&mut self, who: Who, is_commit: bool) {
        let written = self.open.remove(&who).unwrap_or_default();
        if is_commit {
            self.committed.extend(written);
        }
    }

    pub(super) fn is_open(&self, who: Who) -> bool {
        self.open.contains_key(&who)
    }

    pub(super) fn open_sessions(&self) -> BTreeSet<Who> {
        self.open.keys().copied().collect()
    }

    /// Whether another session's open transaction has written this message.
    pub(super) fn is_locked(&self, who: Who, id: i64) -> bool {
        self.open.iter().any(|(other, written)| *other != who && written.contains_key(&id))
    }

    pub(super) fn committed(&self) -> &BTreeMap<i64, Message> {
        &self.committed
    }

    /// The message as a session sees it.
    pub(super) fn get(&self, who: Who, id: i64) -> Option<&Message> {
        self.open.get(&who).and_then(|written| written.get(&id)).or_else(|| self.committed.get(&id))
    }

    pub(super) fn put(&mut self, who: Who, id: i64, message: Message) {
        self.open.get_mut(&who).unwrap_or(&mut self.committed).insert(id, message);
    }

    /// Changes a message as a session does.
    pub(super) fn change<T>(&mut self, who: Who, id: i64, how: impl FnOnce(&mut Message) -> T) -> T {
        let mut message = self.get(who, id).expect("a message that was looked up").clone();
        let answer = how(&mut message);
        self.put(who, id, message);
        answer
    }

    /// The messages that a session sees and `is_meant` takes.
    pub(super) fn ids(&self, who: Who, is_meant: impl Fn(&Message) -> bool) -> Vec<i64> {
        let own = self.open.get(&who).into_iter().flat_map(BTreeMap::keys);
        let all: BTreeSet<i64> = self.committed.keys().chain(own).copied().collect();
        all.into_iter().filter(|id| self.get(who, *id).is_some_and(&is_meant)).collect()
    }

    /// The message, if this delivery of it is held.
    pub(super) fn held(&self, who: Who, (id, read_ct): Ticket) -> Option<&Message> {
        self.get(who, id).filter(|m| m.place == Place::Live && m.lease.is_some() && m.read_ct == read_ct)
    }

    /// Moves a message to the dead letters.
    pub(super) fn bury(&mut self, who: Who, ids: &[i64], reason: impl Fn(&Message) -> (&'static str, i32)) {
        self.tick();
        let since = self.now;
        for id in ids {
            self.change(who, *id, |m| {
                let (reason, attempts) = reason(m);
                m.place = Place::Dead { since, reason, attempts };
            });
        }
    }
}

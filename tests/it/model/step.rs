//! The steps of a history: how one is drawn, what it asks of the database, and what it would have to wait for.

use super::state::{Backoff, Message, Model, Place, Ticket, Who};

/// The sessions, each a connection of its own. The last one never opens a transaction.
pub(super) const SESSIONS: [&str; 4] = ["a", "b", "c", "d"];

/// What a send says; lengths in hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) level: Option<i16>,
    pub(super) delay: Option<i64>,
    pub(super) limit: Option<i32>,
    pub(super) backoff: Option<Backoff>,
    pub(super) expires: Option<i64>,
}

/// One thing that one session does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Begin(Who),
    End(Who, bool),
    Send(Who, Sent, usize),
    Read {
        who: Who,
        qty: usize,
        hours: i64,
        holder: Option<i32>,
        is_floored: bool,
    },
    Peek(Who, usize),
    Ack(Who, Vec<Ticket>),
    Extend {
        who: Who,
        leases: Vec<(Ticket, Option<bool>)>,
        hours: i64,
    },
    Release(Who, Vec<Ticket>),
    Fail {
        who: Who,
        ticket: Ticket,
        after: Option<i64>,
        how: &'static str,
    },
    Defer(Who, Ticket, i64),
    DeadLetter(Who, Ticket, &'static str),
    Cancel(Who, i64),
    RunNow(Who, i64),
    Redrive(Who, i64, Option<i64>),
    RedriveAll(Who, usize, Option<&'static str>),
    Purge(Who, i64),
    PurgeOld(Who, i64, usize),
    Sweep(Who, usize),
    Pause(Who),
    Resume(Who),
    Limit(Who, i32),
    /// Hours go by.
    Pass(i64),
}

impl Step {
    /// Whose step it is; nobody's: time's.
    pub(super) fn who(&self) -> Option<Who> {
        use Step::{
            Ack, Begin, Cancel, DeadLetter, Defer, End, Extend, Fail, Limit, Pass, Pause, Peek, Purge,
            PurgeOld, Read, Redrive, RedriveAll, Release, Resume, RunNow, Send, Sweep,
        };
        match self {
            Begin(who) | End(who, _) | Send(who, ..) | Peek(who, _) | Ack(who, _) | Release(who, _) => {
                Some(*who)
            }
            Defer(who, ..) | DeadLetter(who, ..) | Cancel(who, _) | RunNow(who, _) | Redrive(who, ..) => {
                Some(*who)
            }
            RedriveAll(who, ..) | Purge(who, _) | PurgeOld(who, ..) | Sweep(who, _) | Limit(who, _) => {
                Some(*who)
            }
            Pause(who) | Resume(who) | Read { who, .. } | Extend { who, .. } | Fail { who, .. } => Some(*who),
            Pass(_) => None,
        }
    }

    /// The deliveries that it would settle or extend.
    pub(super) fn tickets(&self) -> Vec<Ticket> {
        match self {
            Self::Ack(_, tickets) | Self::Release(_, tickets) => tickets.clone(),
            Self::Extend { leases, .. } => leases.iter().map(|lease| lease.0).collect(),
            Self::Fail { ticket, .. } | Self::Defer(_, ticket, _) | Self::DeadLetter(_, ticket, _) => {
                vec![*ticket]
            }
            _ => Vec::new(),
        }
    }

    /// Whether it cannot be taken now: it would wait for another session's transaction, or makes no sense inside or
    /// outside of one.
    pub(super) fn is_barred(&self, model: &Model) -> bool {
        let Some(who) = self.who() else { return !model.open_sessions().is_empty() };
        let mut ids: Vec<i64> = self.tickets().iter().map(|ticket| ticket.0).collect();
        let is_alone = match self {
            Self::Begin(_) => return model.is_open(who) || who + 1 == SESSIONS.len(),
            Self::End(..) => return !model.is_open(who),
            Self::Cancel(_, id) | Self::RunNow(_, id) | Self::Redrive(_, id, _) | Self::Purge(_, id) => {
                ids.push(*id);
                true
            }
            Self::RedriveAll(..) | Self::PurgeOld(..) | Self::Sweep(..) => true,
            Self::Pause(_) | Self::Resume(_) | Self::Limit(..) => true,
            _ => false,
        };
        is_alone && model.is_open(who) || ids.iter().any(|id| model.is_locked(who, *id))
    }
}

/// Numbers that follow from a seed, and always will: a seed in a report must mean the same history for ever.
/// SplitMix64, <https://prng.di.unimi.it/splitmix64.c>.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `from` to `to`.
    fn roll(&mut self, from: i64, to: i64) -> i64 {
        from + (self.next() % (to - from + 1).unsigned_abs()) as i64
    }

    fn count(&mut self, to: i64) -> usize {
        self.roll(1, to) as usize
    }

    fn happens(&mut self, percent: i64) -> bool {
        self.roll(1, 100) <= percent
    }

    fn maybe<T>(&mut self, percent: i64, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.happens(percent) { Some(value(self)) } else { None }
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(of[self.roll(0, of.len() as i64 - 1) as usize]) }
    }

    /// Draws the next step.
    pub(super) fn step(&mut self, model: &Model, past: &[Step]) -> Step {
        loop {
            let who = self.roll(0, SESSIONS.len() as i64 - 1) as Who;
            if let Some(step) = self.draw(who, model, past).filter(|step| !step.is_barred(model)) {
                return step;
            }
        }
    }

    fn draw(&mut self, who: Who, model: &Model, past: &[Step]) -> Option<Step> {
        let live = |m: &Message| m.place == Place::Live;
        let hours = self.roll(1, 6);
        Some(match self.roll(1, 100) {
            1..=14 => {
                let sent = self.sent();
                let ct = if self.happens(20) { self.count(4) } else { 1 };
                Step::Send(who, sent, ct)
            }
            15..=34 => {
                let holder = self.maybe(60, |dice| dice.roll(1, 3) as i32);
                let is_floored = holder.is_some() && self.happens(30);
                Step::Read { who, qty: self.count(4), hours, holder, is_floored }
            }
            35 => Step::Peek(who, self.count(5)),
            36..=42 => Step::Ack(who, self.tickets(who, model)?),
            43..=50 => {
                let mut tickets = self.tickets(who, model)?;
                tickets.sort_unstable();
                tickets.dedup_by_key(|ticket| ticket.0);
                let says = self.happens(70);
                let leases = tickets.into_iter().map(|t| (t, says.then(|| self.happens(60)))).collect();
                Step::Extend { who, leases, hours }
            }
            51..=60 => {
                let how = self.pick(&["failed", "failed", "panicked", "timed_out"])?;
                Step::Fail {
                    who,
                    ticket: self.ticket(who, model)?,
                    after: self.maybe(40, |d| d.roll(0, 3)),
                    how,
                }
            }
            61..=63 => Step::Defer(who, self.ticket(who, model)?, self.roll(0, 5)),
            64..=67 => Step::Release(who, self.tickets(who, model)?),
            68..=69 => {
                let reason = self.pick(&["permanent_failure", "undecodable", "expired", "by_operator"])?;
                Step::DeadLetter(who, self.ticket(who, model)?, reason)
            }
            70 => Step::Cancel(who, self.pick(&model.ids(who, live))?),
            71..=72 => Step::RunNow(who, self.pick(&model.ids(who, live))?),
            73 => Step::Redrive(who, self.any_id(who, model)?, self.maybe(40, |dice| dice.roll(0, 4))),
            74 => Step::RedriveAll(
                who,
                self.count(4),
                self.maybe(30, |d| d.pick(&["worker_died", "attempts_exhausted"])).flatten(),
            ),
            75 if self.happens(50) => Step::Purge(who, self.any_id(who, model)?),
            75 => Step::PurgeOld(who, self.roll(0, 20), self.count(3)),
            76..=78 => Step::Sweep(who, self.count(5)),
            79 if self.happens(30) => Step::Pause(who),
            79..=80 => Step::Resume(who),
            81 => Step::Limit(who, self.roll(1, 6) as i32),
            // A caller whose reply was lost, or that woke up late, says again what it said.
            82..=86 => {
                let settling: Vec<&Step> = past.iter().filter(|step| !step.tickets().is_empty()).collect();
                self.pick(&settling)?.clone()
            }
            87..=91 => Step::Begin(who),
            92..=95 => Step::End(who, self.happens(70)),
            _ => {
                // Time stands still while a transaction is open: what it has locked cannot be moved.
                match model.open_sessions().first() {
                    Some(open) => Step::End(*open, self.happens(70)),
                    None => Step::Pass(self.roll(1, 3)),
                }
            }
        })
    }

    fn sent(&mut self) -> Sent {
        let delay = self.maybe(25, |dice| dice.roll(0, 4));
        let backoff = self.maybe(25, |dice| match dice.happens(50) {
            true => Backoff::Fixed(dice.roll(1, 3)),
            false => Backoff::List((0..dice.count(3)).map(|_| dice.roll(0, 3)).collect()),
        });
        Sent {
            level: self.maybe(40, |dice| if dice.happens(50) { 9 } else { 0 }),
            limit: self.maybe(40, |dice| dice.roll(1, 7) as i32),
            expires: self.maybe(25, |dice| delay.unwrap_or(0) + dice.roll(1, 10)),
            delay,
            backoff,
        }
    }

    /// A delivery: mostly one that is held, sometimes one of long ago.
    fn ticket(&mut self, who: Who, model: &Model) -> Option<Ticket> {
        if self.happens(25) {
            return self.pick(&model.tickets);
        }
        let ids = model.ids(who, |m| m.place == Place::Live && m.lease.is_some());
        let id = self.pick(&ids)?;
        model.get(who, id).map(|m| (id, m.read_ct))
    }

    fn tickets(&mut self, who: Who, model: &Model) -> Option<Vec<Ticket>> {
        (0..self.count(4)).map(|_| self.ticket(who, model)).collect()
    }

    /// Mostly a dead letter, sometimes not.
    fn any_id(&mut self, who: Who, model: &Model) -> Option<i64> {
        let is_any = self.happens(20);
        self.pick(&model.ids(who, |m| is_any || m.is_dead()))
    }
}

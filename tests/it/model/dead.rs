//! What the verbs of dead letters do to the model.

use super::state::{LEVELS, Message, Model, Place, State, Who};

impl Model {
    pub(super) fn redrive(&mut self, who: Who, id: i64, hours: Option<i64>) -> bool {
        let is_dead = self.get(who, id).is_some_and(Message::is_dead);
        if is_dead {
            let due = self.now().plus(hours.unwrap_or(0));
            self.change(who, id, |m| {
                m.place = Place::Live;
                m.requeue(due, false);
                m.spent = 0;
                m.holder = None;
                m.redrives += 1;
                m.expires = m.expires.filter(|expires| *expires > due);
            });
        }
        is_dead
    }

    pub(super) fn oldest_dead(&self, who: Who, qty: usize, is_meant: impl Fn(&Message) -> bool) -> Vec<i64> {
        let mut ids = self.ids(who, |m| m.is_dead() && is_meant(m));
        ids.sort_by_key(|id| {
            let since = self.get(who, *id).map(|m| match m.place {
                Place::Dead { since, .. } => since,
                _ => self.now(),
            });
            (since, *id)
        });
        ids.retain(|id| !self.is_locked(who, *id));
        ids.truncate(qty);
        ids
    }

    pub(super) fn redrive_all(&mut self, who: Who, qty: usize, wanted: Option<&str>) -> usize {
        let ids = self.oldest_dead(who, qty, |m| match m.place {
            Place::Dead { reason, .. } => wanted.is_none_or(|wanted| wanted == reason),
            _ => false,
        });
        ids.iter().filter(|id| self.redrive(who, **id, None)).count()
    }

    pub(super) fn purge(&mut self, who: Who, ids: Vec<i64>) -> usize {
        for id in &ids {
            self.change(who, *id, |m| m.place = Place::Purged);
        }
        ids.len()
    }

    pub(super) fn sweep(&mut self, who: Who, qty: usize) -> (usize, usize) {
        let now = self.now();
        let (mut dead_ct, mut abandoned_ct, mut wanted) = (0, 0, qty);
        for level in LEVELS {
            let mut found = self.line(who, level);
            found.retain(|id| {
                let is_silent = self
                    .get(who, *id)
                    .is_some_and(|m| m.has_lapsed(now) && !m.attempts.contains_key(&m.read_ct));
                match self.state_of(who, *id) {
                    State::Doomed(_) => true,
                    State::Ready => is_silent,
                    State::Waiting | State::InFlight => false,
                }
            });
            // The number is of what is looked at; what another transaction has locked is let go only then.
            found.truncate(wanted);
            found.retain(|id| !self.is_locked(who, *id));
            wanted -= found.len();
            let (doomed, ready): (Vec<i64>, Vec<i64>) =
                found.into_iter().partition(|id| self.state_of(who, *id) != State::Ready);
            for (ids, is_ready) in [(&doomed, false), (&ready, true)] {
                for id in ids {
                    let is_written = self.change(who, *id, |m| {
                        let until = m.lease.map(|lease| lease.until).filter(|_| is_ready);
                        m.is_suspect |= is_ready && m.has_lapsed(now);
                        m.has_lapsed(now) && m.record_lapse(now, until)
                    });
                    abandoned_ct += usize::from(is_written);
                }
            }
            dead_ct += doomed.len();
            let limit = self.limit;
            self.bury(who, &doomed, |m| match m.state(limit, now) {
                State::Doomed(reason) => (reason, m.spent - i32::from(m.never_began(now))),
                _ => unreachable!("only what is doomed is buried"),
            });
        }
        (dead_ct, abandoned_ct)
    }
}

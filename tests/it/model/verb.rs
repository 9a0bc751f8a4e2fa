//! What each verb does to the model, and what it answers: lines of text, as `step::sql` asks the database for them.

use super::state::{Backoff, Floors, LEVELS, Lease, Message, Model, Place, State, Ticket, Who};
use super::step::{Sent, Step};

impl Model {
    /// Takes a step and tells the answer.
    pub(super) fn take(&mut self, step: &Step) -> Vec<String> {
        self.tick();
        match step.clone() {
            Step::Begin(who) => self.begin(who),
            Step::End(who, is_commit) => self.end(who, is_commit),
            Step::Pass(hours) => self.pass(hours),
            Step::Send(who, sent, ct) => return (0..ct).map(|_| self.send(who, &sent).to_string()).collect(),
            Step::Read { who, qty, hours, holder, is_floored } => {
                let floors = is_floored.then(|| self.floors.get(&who).copied().unwrap_or_default());
                return self.read(who, qty, hours, holder, floors);
            }
            Step::Peek(who, qty) => return self.peek(who, qty),
            Step::Ack(who, tickets) => {
                return self.each_held(who, tickets, |m| {
                    if let Some(lapse) = m.attempts.get_mut(&m.read_ct) {
                        lapse.outcome = "late_success";
                    }
                    m.place = Place::Done;
                });
            }
            Step::Extend { who, leases, hours } => return self.extend(who, &leases, hours),
            Step::Release(who, tickets) => {
                let now = self.now();
                return self.each_held(who, tickets, |m| {
                    m.record("released", Some(now));
                    m.lease = None;
                    m.spent -= 1;
                });
            }
            Step::Fail { who, ticket, after, how } => return vec![self.fail(who, ticket, after, how)],
            Step::Defer(who, ticket, hours) => return vec![self.defer(who, ticket, hours)],
            Step::DeadLetter(who, ticket, reason) => return vec![self.dead_letter(who, ticket, reason)],
            Step::Cancel(who, id) => return vec![bool_text(self.cancel(who, id))],
            Step::RunNow(who, id) => return vec![bool_text(self.run_now(who, id))],
            Step::Redrive(who, id, hours) => return vec![bool_text(self.redrive(who, id, hours))],
            Step::RedriveAll(who, qty, reason) => {
                return vec![self.redrive_all(who, qty, reason).to_string()];
            }
            Step::Purge(who, id) => {
                let ids = self.ids(who, Message::is_dead).into_iter().filter(|dead| *dead == id).collect();
                return vec![self.purge(who, ids).to_string()];
            }
            Step::PurgeOld(who, hours, qty) => {
                let now = self.now();
                let ids = self.oldest_dead(
                    who,
                    qty,
                    |m| matches!(m.place, Place::Dead { since, .. } if since.plus(hours) <= now),
                );
                return vec![self.purge(who, ids).to_string()];
            }
            Step::Sweep(who, qty) => {
                let (dead, abandoned) = self.sweep(who, qty);
                return vec![format!("dead={dead} abandoned={abandoned}")];
            }
            Step::Pause(_) => return vec![bool_text(!std::mem::replace(&mut self.is_paused, true))],
            Step::Resume(_) => return vec![bool_text(std::mem::replace(&mut self.is_paused, false))],
            Step::Limit(_, limit) => {
                self.limit = limit;
                return vec![limit.to_string()];
            }
        }
        Vec::new()
    }

    fn send(&mut self, who: Who, sent: &Sent) -> i64 {
        self.last_id += 1;
        let now = self.now();
        let message = Message {
            place: Place::Live,
            level: sent.level.unwrap_or(0),
            due: now.plus(sent.delay.unwrap_or(0)),
            lease: None,
            read_ct: 0,
            spent: 0,
            unstarted: 0,
            is_suspect: false,
            holder: None,
            own_limit: sent.limit,
            backoff: sent.backoff.clone().unwrap_or(Backoff::Doubling),
            expires: sent.expires.map(|hours| now.plus(hours)),
            redrives: 0,
            attempts: Default::default(),
        };
        self.put(who, self.last_id, message);
        self.last_id
    }

    /// The live messages of a level that are due, in the order of the line.
    pub(super) fn line(&self, who: Who, level: i16) -> Vec<i64> {
        let now = self.now();
        let mut ids = self.ids(who, |m| m.place == Place::Live && m.level == level && m.due <= now);
        ids.sort_by_key(|id| (self.get(who, *id).map(|m| m.due), *id));
        ids
    }

    pub(super) fn state_of(&self, who: Who, id: i64) -> State {
        self.get(who, id).map_or(State::Waiting, |m| m.state(self.limit, self.now()))
    }

    fn read(
        &mut self,
        who: Who,
        qty: usize,
        hours: i64,
        holder: Option<i32>,
        floors: Option<Floors>,
    ) -> Vec<String> {
        let mut answer = Vec::new();
        if self.is_paused {
            return answer;
        }
        for (nth, level) in LEVELS.into_iter().enumerate() {
            let floor = floors.and_then(|floors| floors[nth]);
            let mut picked = self.line(who, level);
            picked.retain(|id| {
                let is_behind =
                    floor.is_none_or(|floor| self.get(who, *id).is_some_and(|m| (m.due, *id) > floor));
                is_behind && !self.is_locked(who, *id) && self.state_of(who, *id) == State::Ready
            });
            picked.truncate(qty - answer.len());
            for id in picked {
                answer.push(self.deliver(who, id, hours, holder));
                let due = self.get(who, id).map(|m| (m.due, id));
                self.floors.entry(who).or_default()[nth] = due;
            }
            if answer.len() == qty {
                return answer;
            }
        }
        if floors.is_none() {
            self.sweep(who, 100);
        }
        answer
    }

    fn deliver(&mut self, who: Who, id: i64, hours: i64, holder: Option<i32>) -> String {
        let (now, limit) = (self.now(), self.limit);
        let line = self.change(who, id, |m| {
            assert!(m.lease.is_none() || m.has_lapsed(now), "{id} is held by somebody");
            if m.has_lapsed(now) {
                let never_began = m.never_began(now);
                m.record_lapse(now, Some(now));
                m.spent -= i32::from(never_began);
                m.unstarted += i32::from(never_began);
                m.is_suspect = true;
            }
            m.read_ct += 1;
            m.spent += 1;
            m.holder = holder;
            m.lease = Some(Lease { until: now.plus(hours), is_started: holder.is_none() });
            assert!(m.spent <= m.limit(limit), "{id} is run more often than its budget allows");
            format!(
                "{id}/{} attempt={} level={} until={hours} suspect={}",
                m.read_ct, m.spent, m.level, m.is_suspect
            )
        });
        self.tickets.extend(self.get(who, id).map(|m| (id, m.read_ct)));
        line
    }

    fn peek(&self, who: Who, qty: usize) -> Vec<String> {
        let ids = LEVELS.into_iter().flat_map(|level| self.line(who, level));
        ids.filter(|id| self.state_of(who, *id) == State::Ready).take(qty).map(|id| id.to_string()).collect()
    }

    fn each_held(&mut self, who: Who, tickets: Vec<Ticket>, how: impl Fn(&mut Message)) -> Vec<String> {
        let mut ids: Vec<i64> =
            tickets.iter().filter(|t| self.held(who, **t).is_some()).map(|t| t.0).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in &ids {
            self.change(who, *id, &how);
        }
        ids.iter().map(i64::to_string).collect()
    }

    fn extend(&mut self, who: Who, leases: &[(Ticket, Option<bool>)], hours: i64) -> Vec<String> {
        let until = self.now().plus(hours);
        let mut answer = Vec::new();
        for (ticket, is_started) in leases {
            let has_started = *is_started == Some(true);
            answer.extend(self.each_held(who, vec![*ticket], |m| {
                let was_started = m.lease.is_some_and(|lease| lease.is_started);
                m.lease = Some(Lease { until, is_started: was_started || has_started });
            }));
        }
        answer
    }

    /// What a call that comes again is told: its own first answer. Any other is stale.
    fn again(&self, who: Who, (id, read_ct): Ticket, told: &[(&str, &str)]) -> String {
        let attempt = self.get(who, id).and_then(|m| m.attempts.get(&read_ct));
        let known =
            attempt.and_then(|a| told.iter().find(|(outcome, _)| *outcome == a.outcome).map(|t| (a, t.1)));
        match known.map(|(a, answer)| (a.due, answer)) {
            Some((Some(due), answer)) => format!("{answer} {}", self.hours_until(due)),
            Some((None, _)) => "dead ".into(),
            None => "stale ".into(),
        }
    }

    fn fail(&mut self, who: Who, ticket: Ticket, after: Option<i64>, how: &'static str) -> String {
        let Some(m) = self.held(who, ticket) else {
            return self.again(
                who,
                ticket,
                &[("failed", "retry"), ("panicked", "retry"), ("timed_out", "retry")],
            );
        };
        let due = self.now().plus(after.unwrap_or(m.backoff.after(m.spent)));
        let death = if m.spent >= m.limit(self.limit) {
            Some("attempts_exhausted")
        } else {
            m.expires.filter(|expires| due >= *expires).map(|_| "expired")
        };
        self.change(who, ticket.0, |m| m.record(how, death.is_none().then_some(due)));
        match death {
            Some(reason) => self.bury(who, &[ticket.0], |m| (reason, m.spent)),
            None => self.change(who, ticket.0, |m| m.requeue(due, false)),
        }
        death.map_or_else(|| format!("retry {}", self.hours_until(due)), |_| "dead ".into())
    }

    fn defer(&mut self, who: Who, ticket: Ticket, hours: i64) -> String {
        let Some(m) = self.held(who, ticket) else {
            return self.again(who, ticket, &[("deferred", "deferred"), ("expired", "dead")]);
        };
        let due = self.now().plus(hours);
        if m.expires.is_some_and(|expires| due >= expires) {
            self.change(who, ticket.0, |m| m.record("expired", None));
            self.bury(who, &[ticket.0], |m| ("expired", m.spent));
            return "dead ".into();
        }
        self.change(who, ticket.0, |m| {
            m.record("deferred", Some(due));
            m.requeue(due, true);
        });
        format!("deferred {hours}")
    }

    fn dead_letter(&mut self, who: Who, ticket: Ticket, reason: &'static str) -> String {
        let outcome = if reason == "permanent_failure" { "permanent" } else { reason };
        if self.held(who, ticket).is_none() {
            let told =
                ["permanent", "undecodable", "expired", "by_operator"].map(|outcome| (outcome, "dead"));
            return self.again(who, ticket, &told).trim().into();
        }
        self.change(who, ticket.0, |m| m.record(outcome, None));
        self.bury(who, &[ticket.0], |m| (reason, m.spent));
        "dead".into()
    }

    fn cancel(&mut self, who: Who, id: i64) -> bool {
        let is_live = self.get(who, id).is_some_and(|m| m.place == Place::Live);
        if is_live {
            self.change(who, id, |m| {
                if m.lease.is_some() {
                    m.record("cancelled", None);
                }
                m.place = Place::Cancelled;
            });
        }
        is_live
    }

    fn run_now(&mut self, who: Who, id: i64) -> bool {
        let now = self.now();
        let is_waiting = self.get(who, id).is_some_and(|m| m.place == Place::Live && m.due > now);
        if is_waiting {
            self.change(who, id, |m| m.due = now);
        }
        is_waiting
    }
}

fn bool_text(is_so: bool) -> String {
    if is_so { "t".into() } else { "f".into() }
}

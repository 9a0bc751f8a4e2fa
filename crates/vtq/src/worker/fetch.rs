//! The fetcher: when to read, how many, from which place in the line, and how long to wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::connection::Connected;
use super::event::WorkerEvent;
use super::flight::{Begun, Flight, Phase};
use super::handler::Cancel;
use super::health::chain;
use super::look::{Came, Depth, Looks};
use super::plan::{Plan, count, lock};
use super::run::feed;
use super::settle::{Ended, Verdict};
use super::slots::Delivery;
use crate::dead_letter;
use crate::error::{Error, Result};
use crate::read::{self, Claimed, Floors, Place, ReadOptions};

/// The wait after a read that found less than there was room for; it grows while nothing comes.
pub(super) const FIRST_POLL: Duration = Duration::from_millis(10);
/// How long nothing must have come before the worker announces that it sleeps.
const LINGER: Duration = Duration::from_secs(1);
/// The slowest poll before that.
const LINGERING_POLL: Duration = Duration::from_millis(20);
/// The slowest poll of a worker that cannot sleep, since some of its slots are all taken.
const CROWDED_POLL: Duration = Duration::from_millis(200);
const LEAST_BETWEEN_SWEEPS: Duration = Duration::from_secs(1);
const MOST_BETWEEN_SWEEPS: Duration = Duration::from_secs(10);
/// The most messages in one read: a bigger one would make the first of them wait.
const MOST_AT_ONCE: usize = 1000;

/// What the fetcher remembers of one queue.
#[derive(Debug, Default)]
struct Memory {
    /// For each priority level, the last place in the line that was handed to this process.
    floors: Vec<Option<Place>>,
    /// The levels that the floors belong to.
    levels: Vec<i16>,
    looks: Looks,
    /// When the next read is worth while: the last one found less than there was room for.
    look_due: Option<Instant>,
    sweep_due: Option<Instant>,
    trouble_until: Option<Instant>,
    is_in_trouble: bool,
    /// Whether the last read brought a suspect. They run one by one, so more than one a read would only be given back.
    meets_suspects: bool,
}

impl Memory {
    /// Whether the last of these lies before what was handed out before: then more of that may be left, for a read
    /// brings the messages in the order of the line.
    fn is_before_its_floor(&self, claimed: &[Claimed]) -> bool {
        let Some(Claimed { message, .. }) = claimed.last() else { return false };
        let level = self.levels.iter().position(|level| *level == message.priority);
        let floor = level.and_then(|level| self.floors[level]);
        floor.is_some_and(|floor| (message.ready_at, message.lease.id) < floor)
    }
}

/// How a round of reads went.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Round {
    pub(super) found: usize,
    reads: usize,
    /// Whether some capsule had room for more than it was given.
    has_room: bool,
    /// Whether every capsule had.
    is_roomy: bool,
    /// When one of those with room is to be served next.
    due: Option<Instant>,
    /// Whether every queue was read from its front, and all came back short.
    is_drained: bool,
}

/// The fetcher's loop. Ends when the plan stops, or, for a worker that runs once, when there is nothing more to do, or
/// when a queue cannot be read.
pub(super) async fn run(plan: Arc<Plan>) -> Result<()> {
    let mut fetcher = Fetcher {
        connected: Connected::new(plan.clone(), "fetch"),
        memories: plan.queues.iter().map(|_| Memory::default()).collect(),
        poll: FIRST_POLL,
        idle_since: None,
        empty_since: None,
        is_announced: false,
        refusal: None,
        plan,
    };
    let stop = fetcher.plan.stop.clone();
    while !stop.is_cancelled() {
        // What still runs may let another message be due, so the last look is one from when nothing did.
        let is_last_look = fetcher.plan.settings.is_once && fetcher.plan.flights().len() == 0;
        if is_last_look {
            // One round over every queue: left to themselves, they are seldom due together.
            fetcher.look_everywhere();
        }
        let round = fetcher.round().await;
        if let Some(error) = fetcher.refusal.take() {
            return Err(error);
        }
        let is_empty = round.found == 0 && round.is_drained && fetcher.plan.flights().len() == 0;
        if !(is_last_look && is_empty) {
            fetcher.empty_since = None;
        } else if fetcher.is_through().await {
            break;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = fetcher.rest(round) => {}
        }
    }
    Ok(())
}

pub(super) struct Fetcher {
    pub(super) plan: Arc<Plan>,
    pub(super) connected: Connected,
    memories: Vec<Memory>,
    pub(super) poll: Duration,
    pub(super) idle_since: Option<Instant>,
    /// For a worker that runs once: since when looks find nothing while nothing runs.
    pub(super) empty_since: Option<Instant>,
    pub(super) is_announced: bool,
    /// What a worker that runs once ends with.
    refusal: Option<Error>,
}

impl Fetcher {
    /// Reads for every capsule that has room.
    pub(super) async fn round(&mut self) -> Round {
        let plan = self.plan.clone();
        if plan.turns.has_suspect() {
            // Its end stirs, and not before then is there room.
            return Round::default();
        }
        if plan.take_rewind() {
            self.look_everywhere();
        }
        let mut round = Round { is_drained: true, is_roomy: true, ..Round::default() };
        for (place, capsule) in plan.capsules.iter().enumerate() {
            let held = plan.flights().of(&capsule.queues);
            let mut room = capsule.room(held, plan.turns_ahead(&capsule.queues)).min(MOST_AT_ONCE);
            if room == 0 {
                (round.is_drained, round.is_roomy) = (false, false);
                continue;
            }
            for &queue in &capsule.queues {
                if self.memories[queue].look_due.is_some_and(|due| due > Instant::now()) {
                    round.is_drained = false;
                    continue;
                }
                let (found, is_drained) = self.read(queue, room).await;
                round.found += found;
                round.reads += 1;
                round.is_drained &= is_drained;
                room -= found.min(room);
                if found > 0 {
                    feed(&plan, place);
                }
                if room == 0 || plan.stop.is_cancelled() {
                    break;
                }
            }
            round.is_roomy &= room > 0;
            if room > 0 {
                round.has_room = true;
                let now = Instant::now();
                let due = capsule.queues.iter().map(|&queue| self.memories[queue].look_due.unwrap_or(now));
                round.due = due.chain(round.due).min();
            }
        }
        if round.found > 0 {
            self.idle_since = None;
        }
        round
    }

    /// Has the next round read every queue.
    fn look(&mut self) {
        for memory in &mut self.memories {
            memory.look_due = None;
        }
    }

    /// Has the next round read every queue, and from its front.
    pub(super) fn look_everywhere(&mut self) {
        for memory in &mut self.memories {
            memory.looks.rewind();
            memory.look_due = None;
        }
    }

    /// Reads one queue: behind its floors, or from further back when that is due. Answers how many came, and whether the
    /// front was seen and nothing more is there.
    async fn read(&mut self, queue: usize, qty: usize) -> (usize, bool) {
        let memory = &mut self.memories[queue];
        if memory.trouble_until.is_some_and(|until| until > Instant::now()) {
            memory.look_due = memory.trouble_until;
            return (0, true);
        }
        let levels = lock(&self.plan.queues[queue].setting).priorities.clone();
        if memory.levels != levels {
            memory.floors = vec![None; levels.len()];
            memory.levels = levels;
            memory.looks.rewind();
        }
        let depth = memory.looks.next(Instant::now());
        let floors = depth.floors(&memory.floors);
        let qty = if memory.meets_suspects { 1 } else { qty };
        let plan = self.plan.clone();
        let Some(client) = self.connected.client(&plan.stop).await else { return (0, false) };
        // Not before there is a connection: an outage is no part of the read, nor of the leases.
        let asked_at = Instant::now();
        *lock(&plan.last_claim) = Some(asked_at);
        let claim = claim(&plan, &client, queue, qty, floors.as_ref());
        let read = self.connected.bounded("read", claim).await;
        match read {
            Ok(messages) => {
                self.connected.worked();
                let found = messages.len();
                if found > 0 {
                    self.poll = FIRST_POLL;
                }
                self.memories[queue].look_due = (found < qty).then(|| Instant::now() + self.pace(queue));
                let came = match found == qty {
                    false => Came::Short,
                    true if self.memories[queue].is_before_its_floor(&messages) => Came::Behind,
                    true => Came::Full,
                };
                // The bound keeps a wrong number in the database from overflowing; far more than ever serve a queue.
                let took = asked_at.elapsed() * plan.workers_of(queue).clamp(1, 1000);
                self.memories[queue].looks.took(depth, came, Instant::now(), took);
                self.took(queue, messages, asked_at);
                self.sweep(queue).await;
                (found, depth == Depth::Front && found < qty)
            }
            Err(error) => {
                self.trouble(queue, error).await;
                (0, false)
            }
        }
    }

    /// How long until the next read after one that found less than there was room for. Workers poll in turn, which is
    /// left to chance.
    fn pace(&self, queue: usize) -> Duration {
        match self.plan.turns_of(queue) {
            1 => self.poll,
            turns => (self.poll * turns).min(CROWDED_POLL).mul_f64(rand::random_range(0.75..1.25)),
        }
    }

    /// Takes messages in, and remembers the places they had.
    fn took(&mut self, queue: usize, claimed: Vec<Claimed>, asked_at: Instant) {
        let plan = self.plan.clone();
        let memory = &mut self.memories[queue];
        for Claimed { message, .. } in &claimed {
            if let Some(level) = memory.levels.iter().position(|level| *level == message.priority) {
                let place = (message.ready_at, message.lease.id);
                memory.floors[level] = memory.floors[level].max(Some(place));
            }
        }
        if std::mem::take(&mut memory.is_in_trouble) {
            plan.events.tell(WorkerEvent::QueueBack { queue: plan.queues[queue].name.clone() });
        }
        let held_until = asked_at + plan.visibility_timeout(queue);
        let is_any_suspect = claimed.iter().any(|one| one.message.is_suspect);
        self.memories[queue].meets_suspects = is_any_suspect;
        let mut begun = Vec::with_capacity(claimed.len());
        for Claimed { message, has_lane } in claimed {
            let flight = Flight {
                lease: message.lease,
                enqueued_at: message.enqueued_at,
                attempt: message.attempt,
                cancel: Cancel::default(),
                phase: Phase::Waiting,
                is_marked: false,
                has_lane,
                held_until,
            };
            let how = plan.flights().begin(queue, flight);
            if matches!(how, Begun::Overtook | Begun::Stranger) {
                count(&plan.tally.lost);
                let name = plan.queues[queue].name.clone();
                plan.events.tell(WorkerEvent::LeaseLost { queue: name, id: message.lease.id });
            }
            match how {
                Begun::New | Begun::Overtook => begun.push(Delivery { queue, message }),
                Begun::Held => {}
                Begun::Stranger => {
                    let verdict = Verdict::Release("a run of a queue that is gone bears its lease".into());
                    let (lease, attempt, ran) = (message.lease, message.attempt, Duration::ZERO);
                    let _ = plan.outcomes.send(Ended { queue, lease, attempt, ran, verdict });
                }
            }
        }
        let Some(capsule) = plan.capsules.iter().find(|capsule| capsule.queues.contains(&queue)) else {
            return;
        };
        capsule.accept(begun);
    }

    /// Sweeps now and then. A read from the front that comes back short has swept already, in SQL; a busy queue's
    /// never does.
    async fn sweep(&mut self, queue: usize) {
        if self.memories[queue].sweep_due.is_some_and(|due| due > Instant::now()) {
            return;
        }
        let plan = self.plan.clone();
        let Some(client) = self.connected.client(&plan.stop).await else { return };
        let now = Instant::now();
        let name = &plan.queues[queue].name;
        let swept = self.connected.bounded("sweep", dead_letter::sweep(&*client, name, 1000)).await;
        let took = now.elapsed();
        // A hundredth of the time, as for reads from the front, by all that take turns together.
        let turns = plan.turns_of(queue);
        let wait = (took * 100 * turns).clamp(LEAST_BETWEEN_SWEEPS * turns, MOST_BETWEEN_SWEEPS);
        self.memories[queue].sweep_due = Some(Instant::now() + wait);
        match swept {
            Ok(swept) if swept.dead > 0 => {
                plan.events.tell(WorkerEvent::Swept { queue: name.clone(), dead: swept.dead });
            }
            Ok(_) => {}
            Err(error) => self.trouble(queue, error).await,
        }
    }

    /// Waits before the next try. An error of the queue, not of the database, holds up this queue alone.
    pub(super) async fn trouble(&mut self, queue: usize, error: Error) {
        let plan = self.plan.clone();
        match self.connected.failed(&error) {
            Some(wait) => {
                // A server that crashed may have undone claims, and they lie before the floors.
                self.look_everywhere();
                tokio::select! {
                    () = plan.stop.cancelled() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
            None => {
                let memory = &mut self.memories[queue];
                memory.trouble_until = Some(Instant::now() + Duration::from_secs(1));
                memory.look_due = memory.trouble_until;
                if !std::mem::replace(&mut memory.is_in_trouble, true) {
                    let queue = plan.queues[queue].name.clone();
                    plan.events.tell(WorkerEvent::QueueTrouble { queue, error: chain(&error) });
                }
                if plan.settings.is_once {
                    self.refusal = Some(error);
                }
            }
        }
    }

    /// Waits until a read is worth while.
    async fn rest(&mut self, round: Round) {
        let plan = self.plan.clone();
        // Only now: what woke a sleeper was to be read first.
        self.rise().await;
        if !round.has_room {
            // Where it was not slots that were missing, but too much waits to be recorded, nothing may run any more
            // that could free one.
            tokio::select! {
                () = plan.freed.notified() => {}
                () = plan.settled.notified() => {}
            }
            return;
        }
        if round.found == 0 {
            let idle_for = self.idle_since.get_or_insert_with(Instant::now).elapsed();
            if idle_for >= LINGER && round.is_roomy && !plan.settings.is_once {
                return self.sleep().await;
            }
            if round.reads > 0 {
                let slowest = if idle_for < LINGER { LINGERING_POLL } else { CROWDED_POLL };
                self.poll = (self.poll * 5 / 4).min(slowest);
            }
        }
        let wait = round.due.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now()));
        tokio::select! {
            biased;
            () = plan.stir.notified() => self.look_everywhere(),
            () = plan.again.notified() => self.look(),
            () = plan.freed.notified(), if !round.is_roomy => {}
            () = plan.settled.notified(), if !round.is_roomy => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

async fn claim(
    plan: &Plan,
    client: &Client,
    queue: usize,
    qty: usize,
    floors: Option<&Floors>,
) -> Result<Vec<Claimed>> {
    let options = ReadOptions::new().qty(qty).visibility_timeout(plan.visibility_timeout(queue));
    read::claim(client, &plan.queues[queue].name, &options, floors, plan.number()).await
}

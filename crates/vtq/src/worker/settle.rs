//! The settler: records outcomes in batches, and lengthens leases in between, all on one connection, so that two
//! statements over the same rows never wait for each other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use super::connection::{Connected, Patience, SETTLE};
use super::event::{Ending, WorkerEvent};
use super::heartbeat::{self, Heart};
use super::plan::{Plan, count};
use crate::dead_letter::{self, Reason};
use crate::error::{Error, ErrorKind, Result};
use crate::failure::{Failure, Verdict as Wish};
use crate::message::Lease;
use crate::settle::{self, Fate, Holder, Settled};

/// The most outcomes in one batch: the locks of a batch are held until its commit.
const BATCH: usize = 1000;
/// From how many successes on a batch does not wait; fewer give the next ones time to join them, for no longer than the
/// batch before took: so many small batches would cost the server more than the messages do.
const EAGER: usize = 100;
/// The longest such wait.
const LONGEST_REST: Duration = Duration::from_millis(5);
/// How many single settlements are under way at once.
const PIPELINE: usize = 64;

/// A delivery that ended, and what is to be recorded.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) queue: usize,
    pub(super) lease: Lease,
    pub(super) attempt: i32,
    pub(super) ran: Duration,
    pub(super) verdict: Verdict,
}

/// What is to be recorded.
#[derive(Debug, Clone)]
pub(super) enum Verdict {
    Done,
    Fail(Failure),
    Defer(Duration, Option<String>),
    Release(String),
    /// The run ended after its lease was lost; whether it was a success.
    Late(bool),
    /// It has not ended: it is to be marked as started, and the signal given then.
    Mark(CancellationToken),
}

/// The settler's loop. Ends once `plan.close` is given and nothing is left, or when the database stays away after it.
pub(super) async fn run(plan: Arc<Plan>, mut outcomes: mpsc::UnboundedReceiver<Ended>) {
    let mut connected = Connected::new(plan.clone(), SETTLE);
    let mut backlogs: Vec<Backlog> = plan.queues.iter().map(|_| Backlog::default()).collect();
    let mut beat = tokio::time::interval(Heart::interval(&plan));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heart = Heart::default();
    let mut marks: Vec<Ended> = Vec::new();
    loop {
        let due_in = backlogs.iter().filter_map(Backlog::due_in).min();
        let mut received = Vec::new();
        let is_closing = tokio::select! {
            biased;
            _ = beat.tick() => {
                heart.tick(&plan, &mut connected).await;
                false
            }
            _ = outcomes.recv_many(&mut received, BATCH) => false,
            () = tokio::time::sleep(due_in.unwrap_or_default()), if due_in.is_some() => false,
            () = plan.close.cancelled() => true,
        };
        for ended in received {
            match ended.verdict {
                Verdict::Mark(_) => marks.push(ended),
                _ => backlogs[ended.queue].waiting.push(ended),
            }
        }
        for (queue, backlog) in backlogs.iter_mut().enumerate() {
            // Before a suspect starts, no ack rests: it would be lost with the worker, and its run count for nothing.
            if is_closing || !marks.is_empty() || !backlog.is_resting() {
                settle_queue(&plan, &mut connected, queue, backlog).await;
            }
        }
        // After all else: what was given back for them must be so before they start.
        heartbeat::mark(&plan, &mut connected, &mut marks).await;
        if is_closing && backlogs.iter().all(|backlog| backlog.waiting.is_empty()) && outcomes.is_empty() {
            heartbeat::leave(&plan, &mut connected).await;
            return;
        }
        if is_closing {
            // What is left comes back by its visibility timeout; the end does not wait for a database that is away.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Outcomes of one queue that are yet to be recorded. A queue in trouble does not hold up the others.
#[derive(Debug, Default)]
struct Backlog {
    waiting: Vec<Ended>,
    retry_at: Option<Instant>,
    rest_until: Option<Instant>,
    patience: Patience,
    /// Whether these outcomes were sent before and the answer did not come.
    is_repeat: bool,
    is_in_trouble: bool,
}

impl Backlog {
    fn due_in(&self) -> Option<Duration> {
        let due = self.retry_at.max(self.rest_until).filter(|_| !self.waiting.is_empty())?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Whether it is better to wait for more.
    fn is_resting(&self) -> bool {
        self.rest_until.is_some_and(|until| until > Instant::now())
            && self.waiting.len() < EAGER
            && self.waiting.iter().all(|ended| matches!(ended.verdict, Verdict::Done))
    }
}

async fn settle_queue(plan: &Arc<Plan>, connected: &mut Connected, queue: usize, backlog: &mut Backlog) {
    if backlog.waiting.is_empty() || backlog.retry_at.is_some_and(|at| at > Instant::now()) {
        return;
    }
    let Some(client) = connected.client(&plan.close).await else { return };
    let started = Instant::now();
    let batch = &backlog.waiting;
    let result =
        connected.bounded("record outcomes", record(plan, &client, queue, batch, backlog.is_repeat)).await;
    match result {
        Ok(()) => {
            connected.worked();
            if std::mem::take(&mut backlog.is_in_trouble) {
                plan.events.tell(WorkerEvent::QueueBack { queue: plan.queues[queue].name.clone() });
            }
            let rest_until = Some(Instant::now() + started.elapsed().min(LONGEST_REST));
            *backlog = Backlog { rest_until, ..Backlog::default() };
        }
        Err(error) => {
            let wait = connected.failed(&error);
            backlog.is_repeat |= wait.is_some();
            backlog.retry_at = Some(Instant::now() + wait.unwrap_or_else(|| backlog.patience.next()));
            // What was recorded before the error must not be sent again, where that is known.
            let is_due = |ended: &Ended| {
                matches!(ended.verdict, Verdict::Late(_)) || plan.flights().get(queue, ended.lease).is_some()
            };
            backlog.waiting.retain(is_due);
            if wait.is_none() {
                give_up_if_hopeless(plan, queue, backlog, &error);
            }
        }
    }
    plan.settled.notify_one();
}

/// Some errors no waiting mends: the queue is gone, or its table of dead letters.
fn give_up_if_hopeless(plan: &Plan, queue: usize, backlog: &mut Backlog, error: &Error) {
    let name = &plan.queues[queue].name;
    if !std::mem::replace(&mut backlog.is_in_trouble, true) {
        let error = super::health::chain(error);
        plan.events.tell(WorkerEvent::QueueTrouble { queue: name.clone(), error });
    }
    if error.kind() == ErrorKind::QueueNotFound {
        for ended in backlog.waiting.drain(..) {
            finish(plan, &ended, Ending::LeaseLost);
        }
    }
}

/// Records one queue's outcomes: acks and releases as batches, the rest one by one, many at a time.
async fn record(plan: &Plan, client: &Client, queue: usize, batch: &[Ended], is_repeat: bool) -> Result<()> {
    let name = &plan.queues[queue].name;
    let holder = Some(plan.number());
    let done: Vec<&Ended> = batch.iter().filter(|ended| matches!(ended.verdict, Verdict::Done)).collect();
    for part in done.chunks(BATCH) {
        let settled = settle::ack(client, name, &leases(part), holder).await?;
        conclude(plan, part, &settled, Ending::Done, is_repeat);
    }
    let mut released: Vec<(&str, Vec<&Ended>)> = Vec::new();
    for ended in batch {
        if let Verdict::Release(reason) = &ended.verdict {
            match released.iter_mut().find(|(of, _)| of == reason) {
                Some((_, part)) => part.push(ended),
                None => released.push((reason, vec![ended])),
            }
        }
    }
    for (reason, part) in released {
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        let settled = settle::release(client, name, &leases(&part), reason, holder).await?;
        conclude(plan, &part, &settled, Ending::GivenBack, is_repeat);
    }
    let late: Vec<(Lease, bool)> = batch.iter().filter_map(late_run).collect();
    if !late.is_empty() {
        settle::late(client, name, &late).await?;
    }
    let single: Vec<&Ended> =
        batch.iter().filter(|ended| matches!(ended.verdict, Verdict::Fail(_) | Verdict::Defer(..))).collect();
    for part in single.chunks(PIPELINE) {
        let results = join_all(part.iter().map(|ended| record_one(client, name, ended, holder))).await;
        let mut first_error = None;
        for (ended, result) in part.iter().zip(results) {
            match result {
                Ok(ending) => finish(plan, ended, ending),
                Err(error) if error.kind() == ErrorKind::TableMissing => no_grave(plan, ended, &error),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        if let Some(error) = first_error {
            return Err(error);
        }
    }
    Ok(())
}

fn late_run(ended: &Ended) -> Option<(Lease, bool)> {
    match ended.verdict {
        Verdict::Late(is_success) => Some((ended.lease, is_success)),
        _ => None,
    }
}

fn leases(part: &[&Ended]) -> Vec<Lease> {
    part.iter().map(|ended| ended.lease).collect()
}

async fn record_one(
    client: &Client,
    queue: &crate::name::QueueName,
    ended: &Ended,
    holder: Holder,
) -> Result<Ending> {
    let fate = match &ended.verdict {
        Verdict::Fail(failure) => match failure.verdict {
            Wish::Retry(wait) => {
                settle::fail(client, queue, ended.lease, &failure.error, wait, holder).await?
            }
            Wish::Permanent | Wish::Undecodable => {
                let is_permanent = failure.verdict == Wish::Permanent;
                let reason = if is_permanent { Reason::PermanentFailure } else { Reason::Undecodable };
                return Ok(
                    match dead_letter::dead_letter(client, queue, ended.lease, reason, &failure.error, holder)
                        .await?
                    {
                        Settled::Done => Ending::Dead,
                        Settled::LeaseLost => Ending::LeaseLost,
                    },
                );
            }
        },
        Verdict::Defer(delay, reason) => {
            settle::defer(client, queue, ended.lease, *delay, reason.as_deref(), holder).await?
        }
        Verdict::Done | Verdict::Release(_) | Verdict::Late(_) | Verdict::Mark(_) => {
            return Ok(Ending::LeaseLost);
        }
    };
    Ok(match (fate, &ended.verdict) {
        (Fate::Again { .. }, Verdict::Defer(..)) => Ending::GivenBack,
        (Fate::Again { .. }, _) => Ending::Retried,
        (Fate::Dead, _) => Ending::Dead,
        (Fate::Superseded, _) => Ending::Superseded,
        (Fate::LeaseLost, _) => Ending::LeaseLost,
    })
}

/// Ends the deliveries of a batch: those that were settled, and those that were not.
fn conclude(plan: &Plan, part: &[&Ended], settled: &[i64], ending: Ending, is_repeat: bool) {
    if ending == Ending::GivenBack {
        // What was given back lies before the fetcher's floors.
        plan.rewind();
    }
    for ended in part {
        let is_settled = settled.binary_search(&ended.lease.id).is_ok();
        let otherwise = if is_repeat { Ending::Unknown } else { Ending::LeaseLost };
        finish(plan, ended, if is_settled { ending } else { otherwise });
    }
}

/// The message should be dead, and there is no table for it: it stays, and the sweep holds it back.
fn no_grave(plan: &Plan, ended: &Ended, error: &Error) {
    let queue = plan.queues[ended.queue].name.clone();
    plan.events.tell(WorkerEvent::QueueTrouble { queue, error: super::health::chain(error) });
    plan.flights().remove(ended.queue, ended.lease);
}

fn finish(plan: &Plan, ended: &Ended, ending: Ending) {
    let Some(flight) = plan.flights().remove(ended.queue, ended.lease) else {
        // Lost while its outcome was on the way, and counted then.
        return;
    };
    if flight.has_lane || ending == Ending::Retried {
        plan.again.notify_one();
    }
    if ending == Ending::LeaseLost {
        plan.ended_late(ended.queue, ended.lease, &ended.verdict);
    }
    let tally = &plan.tally;
    match ending {
        Ending::Done => count(&tally.done),
        Ending::Retried => count(&tally.retried),
        // A newer message stands for a superseded one: it is as if that had been given back.
        Ending::GivenBack | Ending::Superseded => count(&tally.given_back),
        Ending::Dead => count(&tally.dead),
        Ending::LeaseLost | Ending::Unknown => count(&tally.lost),
    }
    let queue = plan.queues[ended.queue].name.clone();
    if ending == Ending::LeaseLost {
        plan.events.tell(WorkerEvent::LeaseLost { queue: queue.clone(), id: ended.lease.id });
    }
    plan.events.tell(WorkerEvent::Settled {
        queue,
        lease: ended.lease,
        attempt: ended.attempt,
        ending,
        ran: ended.ran,
    });
}

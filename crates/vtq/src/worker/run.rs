//! One run: a handler with its time limit, its cancellation, and its panics.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::event::WorkerEvent;
use super::flight::Flight;
use super::handler::{CancelCause, Context};
use super::outcome::Outcome;
use super::plan::{Plan, count};
use super::settle::{Ended, Verdict};
use super::slots::Delivery;
use super::suspect;
use crate::failure::{self, Failure, Record};
use crate::message::Lease;

/// Starts handlers for what waits in a capsule, as far as it has slots.
pub(super) fn feed(plan: &Arc<Plan>, capsule: usize) {
    while let Some(delivery) = plan.capsules[capsule].begin() {
        plan.handlers.spawn(slot(plan.clone(), capsule, delivery));
    }
}

/// A slot at work: one message after the other, without a detour over the engine, until none waits.
async fn slot(plan: Arc<Plan>, capsule: usize, first: Delivery) {
    let mut next = Some(first);
    while let Some(delivery) = next {
        run(&plan, capsule, delivery).await;
        let has_room;
        (next, has_room) = plan.capsules[capsule].next();
        if has_room {
            plan.freed.notify_one();
        }
    }
}

async fn run(plan: &Arc<Plan>, capsule: usize, delivery: Delivery) {
    let Delivery { queue, message } = delivery;
    let (lease, attempt, timeout) = (message.lease, message.attempt, message.timeout);
    let overdue = timeout.map(|limit| limit + plan.settings.grace + Duration::from_secs(1));
    // Held for the run: while a suspect runs, nothing else starts in this process.
    let _turn = plan.turns.take(message.is_suspect).await;
    if message.is_suspect {
        suspect::make_way(plan, queue, lease).await;
    }
    if !plan.flights().start(queue, lease, overdue) {
        // It waited too long, or is lost; either way it never ran. Releasing a lost lease changes nothing.
        plan.ended(queue, lease, attempt, Duration::ZERO, Verdict::Release("not started in time".into()));
        return;
    }
    let Some(cancel) = plan.flights().get(queue, lease).map(|flight: &Flight| flight.cancel.clone()) else {
        return;
    };
    let name = &plan.queues[queue].name;
    plan.events.tell(WorkerEvent::RunStarted { queue: name.clone(), lease, attempt });

    let context = Context {
        queue: name.clone(),
        worker_id: plan.worker_id.clone(),
        message: None,
        cancel: cancel.clone(),
    };
    let started = Instant::now();
    let handler = plan.capsules[capsule].handler.clone();
    // The call itself may panic, before there is a future to wait for.
    let begun = std::panic::catch_unwind(AssertUnwindSafe(|| handler.start(message, context)));
    let returned = match begun {
        Ok(future) => supervise(plan, future, &cancel, timeout).await,
        Err(panic) => Returned::Panic(panic),
    };
    plan.ended(queue, lease, attempt, started.elapsed(), verdict(plan, returned, cancel.cause(), timeout));
}

/// How a handler's future came to its end.
enum Returned {
    Outcome(Outcome),
    Panic(Box<dyn Any + Send>),
    /// It was cancelled and did not end within its grace.
    Dropped,
}

async fn supervise(
    plan: &Plan,
    future: impl Future<Output = Outcome>,
    cancel: &super::handler::Cancel,
    timeout: Option<Duration>,
) -> Returned {
    let mut running = pin!(AssertUnwindSafe(future).catch_unwind());
    let returned = |result: Result<Outcome, _>| result.map_or_else(Returned::Panic, Returned::Outcome);
    let time_is_up = async {
        match timeout {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        result = &mut running => return returned(result),
        _ = cancel.wait() => {}
        () = time_is_up => cancel.give(CancelCause::TimedOut),
    }
    match tokio::time::timeout(plan.settings.grace, running).await {
        Ok(result) => returned(result),
        Err(_) => Returned::Dropped,
    }
}

/// What is to be recorded for a run.
fn verdict(
    plan: &Plan,
    returned: Returned,
    cause: Option<CancelCause>,
    timeout: Option<Duration>,
) -> Verdict {
    if cause == Some(CancelCause::TimedOut) {
        return timed_out(plan, timeout);
    }
    match returned {
        Returned::Outcome(Outcome::Done) => Verdict::Done,
        // Told to stop, it stopped: what it says of that is no failure of the message.
        Returned::Outcome(Outcome::Failed(_)) | Returned::Dropped if cause == Some(CancelCause::Shutdown) => {
            count(&plan.tally.interrupted);
            Verdict::Release("interrupted by shutdown".into())
        }
        Returned::Outcome(Outcome::Failed(failure)) => Verdict::Fail(signed(plan, failure)),
        Returned::Outcome(Outcome::Deferred { delay, reason }) => Verdict::Defer(delay, reason),
        Returned::Outcome(Outcome::Released { reason }) => Verdict::Release(reason.unwrap_or_default()),
        Returned::Panic(panic) => Verdict::Fail(signed(plan, panicked(&*panic))),
        // Its lease is lost, so that whatever is recorded is stale; or it was cancelled for a cause yet to come.
        Returned::Dropped => Verdict::Release("cancelled".into()),
    }
}

/// The verdict on a run that went past its limit, whatever it returns.
pub(super) fn timed_out(plan: &Plan, timeout: Option<Duration>) -> Verdict {
    let limit = timeout.map_or_else(String::new, |limit| format!(" of {limit:?}"));
    let failure = Failure::new(format!("the run went past its timeout{limit}")).class("timed_out");
    let error = Record { outcome: Some("timed_out"), ..failure.error };
    Verdict::Fail(signed(plan, Failure { error, ..failure }))
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let failure = Failure::new(panic_text(panic)).class("panic");
    Failure { error: Record { outcome: Some("panicked"), ..failure.error }, ..failure }
}

/// What a panic says.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".into())
}

fn signed(plan: &Plan, mut failure: Failure) -> Failure {
    failure.error.worker.get_or_insert_with(|| failure::clean(&plan.worker_id));
    failure
}

impl Plan {
    /// Hands an ended delivery to the settler, unless its lease is lost.
    pub(super) fn ended(&self, queue: usize, lease: Lease, attempt: i32, ran: Duration, verdict: Verdict) {
        if let Some(ended) = self.end(Ended { queue, lease, attempt, ran, verdict }) {
            self.ended_late(queue, lease, &ended.verdict);
        }
    }

    /// Ends a delivery and hands it to the settler; gives it back when its lease is lost or something else has ended it.
    ///
    /// Both in one: once no run is left, the settler ends when nothing is left for it.
    pub(super) fn end(&self, ended: Ended) -> Option<Ended> {
        let mut flights = self.flights();
        if !flights.end(ended.queue, ended.lease) {
            return Some(ended);
        }
        // The settler ends after the last run; nobody is left to hear of a later one.
        let _ = self.outcomes.send(ended);
        None
    }

    /// Has a run written down whose lease was lost before it ended: the sign that a visibility timeout is too short.
    pub(super) fn ended_late(&self, queue: usize, lease: Lease, verdict: &Verdict) {
        let is_success = match verdict {
            Verdict::Done => true,
            Verdict::Fail(_) => false,
            Verdict::Defer(..) | Verdict::Release(_) | Verdict::Late(_) | Verdict::Mark(_) => return,
        };
        count(&self.tally.late);
        let verdict = Verdict::Late(is_success);
        let _ = self.outcomes.send(Ended { queue, lease, attempt: 0, ran: Duration::ZERO, verdict });
    }
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::super::flight::Phase;
    use super::super::{Capsule, Worker, handler_fn};
    use super::*;
    use crate::connect::ConnectOptions;

    /// A plan of one queue, which needs no database yet.
    fn plan() -> (Arc<Plan>, mpsc::UnboundedReceiver<Ended>) {
        let vtq = ConnectOptions::from_url("postgres://localhost/none").unwrap().lazy().unwrap();
        let capsule = Capsule::new(["q"], handler_fn(|_, _| async {}));
        let (sender, outcomes) = mpsc::unbounded_channel();
        let handlers = tokio::runtime::Handle::current();
        let builder = Worker::builder(&vtq).capsule(capsule);
        (Arc::new(Plan::new(builder, handlers, sender, CancellationToken::new()).unwrap()), outcomes)
    }

    #[tokio::test]
    async fn run_that_has_ended_is_with_the_settler() {
        let (plan, mut outcomes) = plan();
        for id in 1..=200 {
            let lease = Lease { id, read_ct: 1 };
            let flight = Flight {
                lease,
                enqueued_at: Utc::now(),
                attempt: 1,
                cancel: Default::default(),
                phase: Phase::Running { since: Instant::now(), overdue: None },
                is_marked: false,
                has_lane: false,
                held_until: Instant::now(),
            };
            plan.flights().begin(0, flight);
            std::thread::scope(|scope| {
                scope.spawn(|| plan.ended(0, lease, 1, Duration::ZERO, Verdict::Done));
                while !plan.flights().running().is_empty() {}
                assert!(outcomes.try_recv().is_ok(), "the {id}th run has ended, and its outcome is nowhere");
            });
            plan.flights().remove(0, lease);
        }
    }
}

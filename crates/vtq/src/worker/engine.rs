//! The engine: its own thread and runtime, so that a handler that blocks cannot stop the heartbeat.

use std::future::Future;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::builder::{WorkerBuilder, check_heartbeat};
use super::connection::Patience;
use super::event::WorkerEvent;
use super::handler::CancelCause;
use super::plan::{Plan, count, lock};
use super::settle::{Ended, Verdict};
use super::{Stopped, fetch, heartbeat, listen, maintain, schedule, settle};
use crate::error::{Error, ErrorKind, Result};
use crate::migrate::SchemaState;

/// How long the last outcomes may take to be recorded once all handlers have ended.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Runs the engine until `shutdown` has ended and all is settled. Dropping the future ends it at once.
pub(super) async fn run(
    builder: WorkerBuilder,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<Stopped> {
    let stop = CancellationToken::new();
    let abandon = CancellationToken::new();
    let (sender, outcomes) = mpsc::unbounded_channel();
    let plan = Arc::new(Plan::new(builder, Handle::current(), sender, stop.clone())?);
    let (done, mut ended) = oneshot::channel();
    let _abandon_when_dropped = abandon.clone().drop_guard();
    thread::Builder::new()
        .name("vtq-engine".into())
        .spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let result = match runtime {
                Ok(runtime) => runtime.block_on(async {
                    tokio::select! {
                        result = live(plan, outcomes) => result,
                        () = abandon.cancelled() => Err(Error::unavailable("the worker was dropped")),
                    }
                }),
                Err(error) => Err(Error::config("the engine's runtime cannot be built").with_source(error)),
            };
            // Nobody waits any more when the worker was dropped.
            let _ = done.send(result);
        })
        .map_err(|error| Error::config("the engine's thread cannot be started").with_source(error))?;
    let result = tokio::select! {
        result = &mut ended => result,
        () = shutdown => {
            stop.cancel();
            ended.await
        }
    };
    result.unwrap_or_else(|_| Err(Error::unavailable("the engine's thread has died")))
}

async fn live(plan: Arc<Plan>, outcomes: mpsc::UnboundedReceiver<Ended>) -> Result<Stopped> {
    if !prepare(&plan).await? {
        return Ok(plan.tally.stopped());
    }
    plan.events.tell(WorkerEvent::Started { worker_id: plan.worker_id.clone() });
    let settler = tokio::spawn(settle::run(plan.clone(), outcomes));
    let listener = tokio::spawn(listen::run(plan.clone()));
    let maintainer = tokio::spawn(maintain::run(plan.clone()));
    let scheduler = tokio::spawn(schedule::run(plan.clone()));
    let fetched = fetch::run(plan.clone()).await;

    drain(&plan).await;
    plan.close.cancel();
    // What could not be recorded comes back by its visibility timeout.
    let _ = timeout(LAST_WORDS, settler).await;
    listener.abort();
    maintainer.abort();
    scheduler.abort();
    fetched.map(|()| plan.tally.stopped())
}

/// Waits for the database, and checks what no waiting can mend. False when it is to stop before that.
async fn prepare(plan: &Arc<Plan>) -> Result<bool> {
    let mut patience = Patience::default();
    loop {
        match check(plan).await {
            Ok(()) => {
                plan.health.up("start");
                return Ok(true);
            }
            Err(error) if error.is_retryable() => plan.health.down("start", &error),
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = plan.stop.cancelled() => return Ok(false),
            () = sleep(patience.next()) => {}
        }
    }
}

async fn check(plan: &Arc<Plan>) -> Result<()> {
    // A connection of this runtime's: the pool's belong to the caller's.
    let client = plan.vtq.dedicated().await?.spawn().0;
    let limit = plan.vtq.statement_limit();
    let answer = timeout(limit, async {
        if crate::migrate::schema_state(&client).await? == SchemaState::Behind {
            return Err(Error::new(
                ErrorKind::NotMigrated,
                "the database has no vtq schema, or an older one: run `vtq migrate`",
            ));
        }
        heartbeat::sign(plan, &client).await
    });
    let settings = answer.await.map_err(|_| Error::timeout("look up the queues", limit))??;
    for served in &plan.queues {
        let Some((_, setting)) = settings.iter().find(|(name, _)| name == served.name.as_str()) else {
            return Err(Error::new(
                ErrorKind::QueueNotFound,
                format!("queue \"{}\" does not exist", served.name),
            ));
        };
        *lock(&served.setting) = setting.clone();
    }
    if let Some(heartbeat) = plan.settings.heartbeat {
        for (place, served) in plan.queues.iter().enumerate() {
            check_heartbeat(&served.name, heartbeat, plan.visibility_timeout(place))?;
        }
    }
    Ok(())
}

/// Gives back what has not started, waits for what runs, and cancels what runs too long. The heartbeat goes on.
async fn drain(plan: &Arc<Plan>) {
    for capsule in &plan.capsules {
        capsule.clear();
    }
    let waiting = plan.flights().waiting();
    for (queue, lease, attempt) in waiting {
        give_back(plan, queue, lease, attempt, "not started before shutdown");
    }
    let running = plan.flights().running().len();
    plan.events.tell(WorkerEvent::Stopping { running });
    wait_for_runs(plan, plan.settings.drain_timeout).await;

    let late = plan.flights().running();
    if late.is_empty() {
        return;
    }
    for (queue, lease, cancel) in &late {
        cancel.give(CancelCause::Shutdown);
        let queue = plan.queues[*queue].name.clone();
        plan.events.tell(WorkerEvent::Cancelled { queue, id: lease.id, cause: CancelCause::Shutdown });
    }
    wait_for_runs(plan, plan.settings.grace + Duration::from_millis(500)).await;
    // A handler that blocks its thread cannot be dropped; its message is given back all the same.
    for (queue, lease, _) in plan.flights().running() {
        count(&plan.tally.interrupted);
        let attempt = plan.flights().get(queue, lease).map_or(0, |flight| flight.attempt);
        give_back(plan, queue, lease, attempt, "interrupted by shutdown");
    }
}

async fn wait_for_runs(plan: &Plan, limit: Duration) {
    let until = Instant::now() + limit;
    while !plan.flights().running().is_empty() {
        let Some(left) = until.checked_duration_since(Instant::now()) else { return };
        let _ = timeout(left.min(Duration::from_millis(100)), plan.freed.notified()).await;
    }
}

fn give_back(plan: &Plan, queue: usize, lease: crate::message::Lease, attempt: i32, why: &str) {
    let verdict = Verdict::Release(why.into());
    // What has ended meanwhile is not to be given back.
    let _ = plan.end(Ended { queue, lease, attempt, ran: Duration::ZERO, verdict });
}

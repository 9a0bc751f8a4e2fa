//! Heartbeats: lengthening every lease that this process holds, and saying that it lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::types::Type;

use super::connection::Connected;
use super::event::WorkerEvent;
use super::handler::CancelCause;
use super::plan::{Plan, QueueSetting, count, lock};
use super::run::timed_out;
use super::settle::Ended;
use crate::call::{self, Param};
use crate::error::Result;
use crate::settle;
use crate::sql;
use crate::wire::Interval;

/// How often a process says in `vtq._worker` that it lives.
const SIGN_EVERY: Duration = Duration::from_secs(15);
/// The same, for one that holds nothing: ten idle workers together stay under a statement a second.
const SIGN_EVERY_WHEN_IDLE: Duration = Duration::from_secs(60);

/// Lengthens every lease, buffered messages included. What is missing from the answer is lost.
pub(super) async fn beat(plan: &Arc<Plan>, connected: &mut Connected) {
    end_overdue(plan);
    for queue in 0..plan.queues.len() {
        let leases = plan.flights().leases(queue);
        if leases.is_empty() {
            continue;
        }
        let length = plan.visibility_timeout(queue);
        let Some(client) = connected.client(&plan.close).await else { return };
        let asked_at = Instant::now();
        let name = &plan.queues[queue].name;
        let extend = settle::extend(&*client, sql::BEAT, name, &leases, Some(length));
        match connected.bounded("extend leases", extend).await {
            Ok(held) => {
                connected.worked();
                plan.flights().extended(queue, &leases, asked_at + length);
                for lease in leases.iter().filter(|lease| held.binary_search(&lease.id).is_err()) {
                    let Some(flight) = plan.flights().remove(queue, *lease) else { continue };
                    flight.cancel.give(CancelCause::LeaseLost);
                    count(&plan.tally.lost);
                    plan.events.tell(WorkerEvent::LeaseLost { queue: name.clone(), id: lease.id });
                }
            }
            Err(error) => {
                connected.failed(&error);
            }
        }
    }
}

/// Ends runs whose handlers do not react to being cancelled, so that their leases are not renewed for ever.
fn end_overdue(plan: &Plan) {
    let overdue = plan.flights().overdue(Instant::now());
    for (queue, lease, ran) in overdue {
        let attempt = plan.flights().get(queue, lease).map_or(0, |flight| flight.attempt);
        if plan.flights().end(queue, lease) {
            let verdict = timed_out(plan, None);
            let _ = plan.outcomes.send(Ended { queue, lease, attempt, ran, verdict });
        }
    }
}

/// When this process last said that it lives.
#[derive(Debug, Default)]
pub(super) struct Signs {
    last: Option<Instant>,
}

impl Signs {
    /// Says it again when it is time, and takes note of what the queues are set to.
    pub(super) async fn give(&mut self, plan: &Arc<Plan>, connected: &mut Connected) {
        let every = if plan.flights().len() == 0 { SIGN_EVERY_WHEN_IDLE } else { SIGN_EVERY };
        if self.last.is_some_and(|last| last.elapsed() < every) {
            return;
        }
        let Some(client) = connected.client(&plan.close).await else { return };
        match connected.bounded("give a sign of life", sign(plan, &*client)).await {
            Ok(settings) => {
                self.last = Some(Instant::now());
                for served in &plan.queues {
                    if let Some((_, setting)) = settings.iter().find(|(name, _)| name == served.name.as_str())
                    {
                        *lock(&served.setting) = setting.clone();
                    }
                }
            }
            Err(error) => {
                connected.failed(&error);
            }
        }
    }
}

/// Says that this process lives. Answers what its queues are set to; a queue that is gone is missing.
pub(super) async fn sign<C: tokio_postgres::GenericClient>(
    plan: &Plan,
    client: &C,
) -> Result<Vec<(String, QueueSetting)>> {
    let what = "give a sign of life";
    let host = host(&plan.worker_id);
    let pid = std::process::id() as i32;
    let queues = plan.queue_names();
    let last_claim = lock(&plan.last_claim).map(|at| Interval(at.elapsed()));
    let in_flight = plan.flights().len() as i32;
    let params: [Param<'_>; 7] = [
        (&&*plan.worker_id, Type::TEXT),
        (&host, Type::TEXT),
        (&pid, Type::INT4),
        (&env!("CARGO_PKG_VERSION"), Type::TEXT),
        (&queues, Type::TEXT_ARRAY),
        (&last_claim, Type::INTERVAL),
        (&in_flight, Type::INT4),
    ];
    let rows = call::rows(client, what, sql::SIGN_OF_LIFE, &params).await?;
    let setting = |row: &tokio_postgres::Row| {
        let visibility_timeout = call::column::<Interval>(row, 1, what)?.0;
        let priorities = call::column(row, 2, what)?;
        Ok((call::column(row, 0, what)?, QueueSetting { visibility_timeout, priorities }))
    };
    rows.iter().map(setting).collect()
}

fn host(worker_id: &str) -> &str {
    worker_id.rsplitn(3, ':').last().unwrap_or(worker_id)
}

/// Takes this process's rows out of the database. A failure leaves them to their expiry.
pub(super) async fn leave(plan: &Arc<Plan>, connected: &mut Connected) {
    let Some(client) = connected.client(&plan.close).await else { return };
    let params: [Param<'_>; 1] = [(&&*plan.worker_id, Type::TEXT)];
    if let Err(error) = connected.bounded("leave", call::rows(&*client, "leave", sql::LEAVE, &params)).await {
        tracing::debug!(%error, "could not take the worker's row out");
    }
}

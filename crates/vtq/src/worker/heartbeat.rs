//! Heartbeats: lengthening every lease that this process holds, and saying that it lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::types::Type;

use super::connection::Connected;
use super::event::WorkerEvent;
use super::handler::CancelCause;
use super::plan::{Plan, QueueSetting, count, lock};
use super::run::timed_out;
use super::settle::{Ended, Verdict};
use crate::call::{self, Param};
use crate::error::Result;
use crate::message::Lease;
use crate::settle;
use crate::sql;
use crate::wire::Interval;

/// How often a process says in `vtq._worker` that it lives.
const SIGN_EVERY: Duration = Duration::from_secs(15);
/// The same, for one that holds nothing: ten idle workers together stay under a statement a second.
const SIGN_EVERY_WHEN_IDLE: Duration = Duration::from_secs(60);
/// The same, after its first: workers start together and are to know of each other.
const SECOND_SIGN_AFTER: Duration = Duration::from_secs(1);

/// How long a run goes on before the database is told that it has started, should no heartbeat have said so. A run
/// that dies sooner counts as one that never started.
const MARK_AFTER: Duration = Duration::from_secs(1);

/// When this process last beat, and last said that it lives.
#[derive(Debug, Default)]
pub(super) struct Heart {
    last_beat: Option<Instant>,
    last_sign: Option<Instant>,
    /// Whether it has said so more than once.
    is_known: bool,
    /// What it last said of its listener.
    last_wake_up: Option<&'static str>,
}

impl Heart {
    /// How often to look whether something is due.
    pub(super) fn interval(plan: &Plan) -> Duration {
        plan.heartbeat().min(MARK_AFTER)
    }

    /// Does what is due: lengthens every lease, or only marks runs that have started; gives a sign of life.
    pub(super) async fn tick(&mut self, plan: &Arc<Plan>, connected: &mut Connected) {
        end_overdue(plan);
        // Half a tick early is in time; half a tick late would be a whole one.
        let early = Self::interval(plan) / 2;
        let is_beat = self.last_beat.is_none_or(|last| last.elapsed() + early >= plan.heartbeat());
        let mut all_went_through = true;
        for queue in 0..plan.queues.len() {
            let leases = if is_beat {
                plan.flights().leases(queue)
            } else {
                plan.flights().unmarked(queue, MARK_AFTER)
            };
            all_went_through &= leases.is_empty() || extend(plan, connected, queue, &leases).await;
        }
        if is_beat && all_went_through {
            self.last_beat = Some(Instant::now());
        }
        self.sign(plan, connected).await;
    }

    /// Says that the process lives when it is time, and takes note of what the queues are set to.
    async fn sign(&mut self, plan: &Arc<Plan>, connected: &mut Connected) {
        let every = match self.last_sign {
            Some(_) if !self.is_known => SECOND_SIGN_AFTER,
            _ if plan.flights().len() == 0 => SIGN_EVERY_WHEN_IDLE,
            _ => SIGN_EVERY,
        };
        let wake_up = plan.wake_up();
        if self.last_wake_up == wake_up && self.last_sign.is_some_and(|last| last.elapsed() < every) {
            return;
        }
        let Some(client) = connected.client(&plan.close).await else { return };
        match connected.bounded("give a sign of life", sign(plan, &*client)).await {
            Ok(settings) => {
                self.is_known = self.last_sign.replace(Instant::now()).is_some();
                self.last_wake_up = wake_up;
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

/// Lengthens leases; what is missing from the answer is lost. False when the database did not answer.
async fn extend(plan: &Arc<Plan>, connected: &mut Connected, queue: usize, leases: &[(Lease, bool)]) -> bool {
    let length = plan.visibility_timeout(queue);
    let Some(client) = connected.client(&plan.close).await else { return false };
    let asked_at = Instant::now();
    let name = &plan.queues[queue].name;
    match connected
        .bounded("extend leases", settle::beat(&*client, name, leases, length, plan.number()))
        .await
    {
        Ok(held) => {
            connected.worked();
            plan.flights().extended(queue, leases, asked_at + length);
            for (lease, _) in leases.iter().filter(|(lease, _)| held.binary_search(&lease.id).is_err()) {
                let Some(flight) = plan.flights().remove(queue, *lease) else { continue };
                flight.cancel.give(CancelCause::LeaseLost);
                count(&plan.tally.lost);
                plan.events.tell(WorkerEvent::LeaseLost { queue: name.clone(), id: lease.id });
            }
            true
        }
        Err(error) => {
            connected.failed(&error);
            false
        }
    }
}

/// Marks suspects as started before they start, and says so to those that wait for it.
pub(super) async fn mark(plan: &Arc<Plan>, connected: &mut Connected, marks: &mut Vec<Ended>) {
    let mut unmarked = Vec::new();
    for ended in marks.drain(..) {
        let Verdict::Mark(marked) = &ended.verdict else { continue };
        if extend(plan, connected, ended.queue, &[(ended.lease, true)]).await {
            marked.cancel();
        } else {
            unmarked.push(ended);
        }
    }
    *marks = unmarked;
}

/// Ends runs whose handlers do not react to being cancelled, so that their leases are not renewed for ever.
fn end_overdue(plan: &Plan) {
    let overdue = plan.flights().overdue(Instant::now());
    for (queue, lease, ran) in overdue {
        let attempt = plan.flights().get(queue, lease).map_or(0, |flight| flight.attempt);
        let verdict = timed_out(plan, None);
        // One that has ended meanwhile was in time.
        let _ = plan.end(Ended { queue, lease, attempt, ran, verdict });
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
    let wake_up = plan.wake_up();
    let params: [Param<'_>; 8] = [
        (&&*plan.worker_id, Type::TEXT),
        (&host, Type::TEXT),
        (&pid, Type::INT4),
        (&env!("CARGO_PKG_VERSION"), Type::TEXT),
        (&queues, Type::TEXT_ARRAY),
        (&last_claim, Type::INTERVAL),
        (&in_flight, Type::INT4),
        (&wake_up, Type::TEXT),
    ];
    let rows = call::rows(client, what, sql::SIGN_OF_LIFE, &params).await?;
    if let Some(row) = rows.first() {
        plan.set_number(call::column(row, 3, what)?);
    }
    let setting = |row: &tokio_postgres::Row| {
        let visibility_timeout = call::column::<Interval>(row, 1, what)?.0;
        let priorities = call::column(row, 2, what)?;
        let workers = u32::try_from(call::column::<i64>(row, 4, what)?).unwrap_or(u32::MAX);
        let is_capped = call::column(row, 5, what)?;
        let setting = QueueSetting { visibility_timeout, priorities, workers, is_capped };
        Ok((call::column(row, 0, what)?, setting))
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

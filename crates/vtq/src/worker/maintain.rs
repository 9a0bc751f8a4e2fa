//! Maintenance: retention, partitions, compaction, now and then, by whichever worker comes first.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::event::WorkerEvent;
use super::health::chain;
use super::plan::Plan;
use crate::admin;
use crate::error::{Error, Result};
use crate::name::QueueName;

/// How often, while messages are handled and while none are. Workers do not agree on a time: the random part spreads
/// them, and the database lets one at a time do it.
const BUSY: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(300);
/// A batch is 10000 rows; a queue with more to remove has the rest removed next time.
const BATCHES: usize = 20;

/// The loop. It has a connection only while it works, since it works seldom.
pub(super) async fn run(plan: Arc<Plan>) {
    let mut was_told = vec![false; plan.queues.len()];
    loop {
        let before = plan.tally.stopped();
        let turns = plan.most_turns(0..plan.queues.len());
        let started = Instant::now();
        let after = |every: Duration| started + (every * turns).mul_f64(rand::random_range(0.5..1.0));
        let soon = after(BUSY);
        let mut until = if plan.flights().len() > 0 { soon } else { after(IDLE) };
        while Instant::now() < until {
            tokio::select! {
                () = plan.close.cancelled() => return,
                () = tokio::time::sleep(BUSY.min(until - Instant::now())) => {}
            }
            // A worker that gets busy meanwhile need not wait for the idle one's time.
            if plan.tally.stopped() != before {
                until = until.min(soon);
            }
        }
        for (served, was_told) in plan.queues.iter().zip(&mut was_told) {
            if let Err(error) = maintain(&plan, &served.name).await {
                // The next round tries again; the parts that matter report the database's absence.
                if !error.is_retryable() && !std::mem::replace(was_told, true) {
                    let queue = served.name.clone();
                    plan.events.tell(WorkerEvent::MaintenanceRefused { queue, error: chain(&error) });
                }
            }
        }
    }
}

async fn maintain(plan: &Plan, name: &QueueName) -> Result<()> {
    let limit = plan.vtq.statement_limit();
    let (client, _notifications) = plan.vtq.dedicated().await?.spawn();
    for _ in 0..BATCHES {
        let done = timeout(limit, admin::maintain(&client, name))
            .await
            .map_err(|_| Error::timeout("maintain a queue", limit))??;
        let is_full = |key: &str| done.get(key).and_then(serde_json::Value::as_u64) == Some(10_000);
        if !is_full("attempts_removed") && !is_full("dead_removed") {
            break;
        }
    }
    Ok(())
}

//! Maintenance: retention, partitions, compaction, now and then, by whichever worker comes first.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Stopped;
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

/// When a queue is next maintained.
struct Due {
    at: Instant,
    /// The same, should the worker get busy meanwhile.
    soon: Instant,
    /// What the worker had done when this was set.
    done: Stopped,
}

impl Due {
    fn new(plan: &Plan, queue: usize) -> Self {
        let turns = plan.turns_of(queue);
        let after = |every: Duration| Instant::now() + (every * turns).mul_f64(rand::random_range(0.5..1.0));
        let soon = after(BUSY);
        let at = if plan.flights().len() > 0 { soon } else { after(IDLE) };
        Self { at, soon, done: plan.tally.stopped() }
    }

    /// Whether it is time. A worker that gets busy need not wait for the idle one's time.
    fn is_now(&mut self, plan: &Plan) -> bool {
        if plan.tally.stopped() != self.done {
            self.at = self.at.min(self.soon);
        }
        self.at <= Instant::now()
    }
}

/// The loop. It has a connection only while it works, since it works seldom.
pub(super) async fn run(plan: Arc<Plan>) {
    let mut was_told = vec![false; plan.queues.len()];
    let mut due: Vec<Due> = (0..plan.queues.len()).map(|queue| Due::new(&plan, queue)).collect();
    loop {
        let next = due.iter().map(|due| due.at.saturating_duration_since(Instant::now())).min();
        tokio::select! {
            () = plan.close.cancelled() => return,
            () = tokio::time::sleep(next.unwrap_or(BUSY).min(BUSY)) => {}
        }
        for (queue, due) in due.iter_mut().enumerate() {
            if !due.is_now(&plan) {
                continue;
            }
            let name = &plan.queues[queue].name;
            if let Err(error) = maintain(&plan, name).await {
                // The next round tries again; the parts that matter report the database's absence.
                if !error.is_retryable() && !std::mem::replace(&mut was_told[queue], true) {
                    let error = chain(&error);
                    plan.events.tell(WorkerEvent::MaintenanceRefused { queue: name.clone(), error });
                }
            }
            *due = Due::new(&plan, queue);
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

//! Watches the queue empty itself, and replaces the workers that die of it.

use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::time::{MissedTickBehavior, interval};
use vtq::Exact;

use super::crew::Crew;
use super::place::Place;
use super::progress::{self, Progress};

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// No lease and no backoff of the demo's queue lasts nearly as long.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// Runs workers until no message is left in the queue.
pub(super) async fn until_settled(place: &Place, crew: &mut Crew, progress: &Progress) -> anyhow::Result<()> {
    let metrics = place.queue.metrics(Exact::Yes).await?;
    progress.work(metrics.sent_total.unwrap_or_default());
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut left = u64::MAX;
    let mut moved = Instant::now();
    let mut pid = crew.start()?;
    loop {
        tokio::select! {
            killed = crew.killed() => {
                killed?;
                let (number, next) = (crew.size, crew.size + 1);
                progress.lost(&format!("worker {number} (pid {pid}) was killed by its message; worker {next} takes over"));
                pid = crew.start()?;
            }
            _ = looks.tick() => {
                let metrics = place.queue.metrics(Exact::Yes).await?;
                progress.show(&metrics);
                let live = progress::live(&metrics);
                if live == 0 {
                    return Ok(());
                }
                if live != left {
                    (left, moved) = (live, Instant::now());
                }
                ensure!(moved.elapsed() < STUCK_AFTER, "{live} messages have been waiting for {STUCK_AFTER:?}");
            }
        }
    }
}

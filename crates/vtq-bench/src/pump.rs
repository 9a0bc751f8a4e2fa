//! Producers and consumers at work together. One that ends early ends the measurement, with its error.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::task::{JoinError, JoinSet};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::body::Body;
use crate::peer::{Consume, Peer, Producer};
use crate::tally::Tally;

/// How many messages may wait before producers that send flat out pause: a backlog, and never a growing one.
const MOST_WAITING: i64 = 5000;

const FILL_BATCH: usize = 1000;

/// Some tasks, and how they are ended.
#[derive(Debug, Default)]
pub(crate) struct Pump {
    tasks: JoinSet<Result<()>>,
    pub(crate) stop: CancellationToken,
    /// Messages that were sent or are being sent.
    sent: Arc<AtomicI64>,
}

impl Pump {
    /// Adds a consumer.
    pub(crate) fn consume(&mut self, peer: Peer, consume: Consume) {
        self.tasks.spawn(peer.consume(consume));
    }

    /// Adds something else that works until it is told to stop.
    pub(crate) fn add(&mut self, work: impl Future<Output = Result<()>> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Adds a producer that sends batch after batch, as long as not too many wait.
    pub(crate) fn flat_out(&mut self, producer: Producer, batch: usize, tally: Arc<Tally>) {
        let (stop, sent) = (self.stop.clone(), self.sent.clone());
        self.tasks.spawn(async move {
            while !stop.is_cancelled() {
                let handled = i64::try_from(tally.handled())?;
                if sent.load(Ordering::Relaxed) - handled > MOST_WAITING {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                }
                let first = sent.fetch_add(i64::try_from(batch)?, Ordering::Relaxed);
                producer.send(Body::batch(first, batch)).await?;
            }
            Ok(())
        });
    }

    /// Counts as handled what was sent, where nobody reads.
    pub(crate) fn count_sent(&mut self, tally: Arc<Tally>) {
        let (stop, sent) = (self.stop.clone(), self.sent.clone());
        self.tasks.spawn(async move {
            while !stop.is_cancelled() {
                tally.add(u64::try_from(sent.load(Ordering::Relaxed))?.saturating_sub(tally.handled()));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        });
    }

    /// Sends `count` messages, and waits for it.
    pub(crate) async fn fill(&self, producer: &Producer, count: usize) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let batch = left.min(FILL_BATCH);
            let first = self.sent.fetch_add(i64::try_from(batch)?, Ordering::Relaxed);
            producer.send(Body::batch(first, batch)).await?;
            left -= batch;
        }
        Ok(())
    }

    /// Adds a producer that sends a batch at each tick of a clock, and catches up when it was late.
    pub(crate) fn steadily(
        &mut self,
        producer: Producer,
        every: Duration,
        batch: usize,
        on_sent: impl Fn(i64, usize) + Send + Sync + 'static,
    ) {
        let (stop, sent) = (self.stop.clone(), self.sent.clone());
        self.tasks.spawn(async move {
            let mut clock = tokio::time::interval(every);
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            while stop.run_until_cancelled(clock.tick()).await.is_some() {
                let first = sent.fetch_add(i64::try_from(batch)?, Ordering::Relaxed);
                producer.send(Body::batch(first, batch)).await?;
                on_sent(first, batch);
            }
            Ok(())
        });
    }

    /// Lets them work for a while.
    pub(crate) async fn work(&mut self, span: Duration) -> Result<()> {
        tokio::select! {
            ended = self.tasks.join_next(), if !self.tasks.is_empty() => early(ended).map(drop),
            () = tokio::time::sleep(span) => Ok(()),
        }
    }

    /// Lets them work until `is_done`, but no longer than `limit`; whether it was done.
    pub(crate) async fn work_until(&mut self, limit: Duration, is_done: impl Fn() -> bool) -> Result<bool> {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if is_done() || left.is_zero() {
                return Ok(is_done());
            }
            tokio::select! {
                ended = self.tasks.join_next(), if !self.tasks.is_empty() => return early(ended),
                () = tokio::time::sleep(left.min(Duration::from_millis(5))) => {}
            }
        }
    }

    /// Ends them, and waits.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

fn early(ended: Option<Result<Result<()>, JoinError>>) -> Result<bool> {
    if let Some(ended) = ended {
        ended??;
    }
    bail!("a producer or a consumer ended before it was told to")
}

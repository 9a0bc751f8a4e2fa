//! Senders: one batch under way each, flat out or at a rate.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use vtq::{Queue, SendOptions};

use super::payload::Writer;
use super::tally::Tally;

/// At a rate, what has become due is sent this often: a message need not wait until a batch is full.
const TICK: Duration = Duration::from_millis(10);

/// One sender.
#[derive(Debug)]
pub(super) struct Producer {
    pub(super) queue: Queue,
    pub(super) writer: Writer,
    pub(super) tally: Arc<Tally>,
    pub(super) batch: usize,
    pub(super) rate: Option<Rate>,
}

/// How much one of several senders sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// Messages a second.
    pub(super) per_second: f64,
    /// Its place between two ticks, 0 to 1, so that senders do not all send at once.
    pub(super) phase: f64,
}

impl Producer {
    /// Sends until it is told to stop; a batch that is under way is seen to its end.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) -> anyhow::Result<()> {
        let sending = match self.rate {
            None => self.flat_out(&stop).await,
            Some(rate) => self.at(rate, &mut stop).await,
        };
        sending.context("a sender of the bench came to an end")
    }

    async fn flat_out(&mut self, stop: &watch::Receiver<bool>) -> anyhow::Result<()> {
        while !*stop.borrow() {
            self.send(self.batch).await?;
        }
        Ok(())
    }

    async fn at(&mut self, rate: Rate, stop: &mut watch::Receiver<bool>) -> anyhow::Result<()> {
        let began = Instant::now() + TICK.mul_f64(rate.phase);
        let mut ticks = interval_at(began + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut sent = 0;
        loop {
            tokio::select! {
                _ = stop.wait_for(|stops| *stops) => return Ok(()),
                _ = ticks.tick() => {}
            }
            // One that has fallen behind catches up, by full batches.
            let due = (began.elapsed().as_secs_f64() * rate.per_second) as usize;
            while sent < due && !*stop.borrow() {
                let number = self.batch.min(due - sent);
                self.send(number).await?;
                sent += number;
            }
        }
    }

    async fn send(&mut self, number: usize) -> anyhow::Result<()> {
        let batch = self.tally.open_batch();
        let messages = self.writer.batch(number, Some(batch))?;
        let sending = Instant::now();
        self.queue.send_batch(&messages, &SendOptions::default()).await?;
        self.tally.batch_committed(batch, number as u64, sending.elapsed());
        Ok(())
    }
}

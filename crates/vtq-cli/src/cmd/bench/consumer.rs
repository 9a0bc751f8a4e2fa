//! Workers: the library's own, with a handler that takes note of the time and sleeps.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::{mpsc, watch};
use vtq::{Capsule, Ending, Outcome, QueueName, Vtq, Worker, WorkerEvent, handler_fn};

use super::payload::{self, Origin};
use super::tally::Tally;

/// A message of somebody else's that lands in the queue is put off for this long, and left alone.
const FOREIGN_DELAY: Duration = Duration::from_secs(24 * 3600);
/// A handler that sleeps is let sleep to its end, and then some.
const SPARE: Duration = Duration::from_secs(5);

/// What a worker needs to know.
#[derive(Debug, Clone)]
pub(super) struct Consumer {
    pub(super) vtq: Vtq,
    pub(super) queue: QueueName,
    pub(super) run: Arc<str>,
    pub(super) tally: Arc<Tally>,
    pub(super) concurrency: usize,
    pub(super) handler_time: Duration,
}

impl Consumer {
    /// Works until it is told to stop; says on `started` when it has begun.
    pub(super) async fn work(
        self,
        mut stop: watch::Receiver<bool>,
        started: mpsc::UnboundedSender<()>,
    ) -> anyhow::Result<()> {
        let tally = self.tally.clone();
        let worker = Worker::builder(&self.vtq)
            .drain_timeout(self.handler_time.saturating_add(SPARE))
            .on_event(move |event| note(&tally, event, &started))
            .capsule(self.capsule())
            .build()?;
        let shutdown = async move {
            // Its sender is gone: so is the run.
            let _ = stop.wait_for(|stops| *stops).await;
        };
        worker.run(shutdown).await.context("a worker of the bench came to an end")?;
        Ok(())
    }

    fn capsule(self) -> Capsule {
        let Self { queue, run, tally, concurrency, handler_time, .. } = self;
        let handler = handler_fn(move |message: vtq::Message, _| {
            let origin = payload::origin(&message, &run);
            match origin {
                Origin::Sent(batch) if message.lease.read_ct == 1 => tally.handler_started(batch),
                Origin::Foreign => super::tally::add(&tally.foreign),
                _ => {}
            }
            async move {
                if origin == Origin::Foreign {
                    return Outcome::defer(FOREIGN_DELAY);
                }
                if !handler_time.is_zero() {
                    tokio::time::sleep(handler_time).await;
                }
                Outcome::Done
            }
        });
        Capsule::new([queue], handler).concurrency(concurrency)
    }
}

fn note(tally: &Tally, event: &WorkerEvent, started: &mpsc::UnboundedSender<()>) {
    match event {
        // Nobody may be waiting for it any more.
        WorkerEvent::Started { .. } => drop(started.send(())),
        WorkerEvent::RunStarted { lease, .. } if lease.read_ct > 1 => super::tally::add(&tally.redelivered),
        WorkerEvent::Settled { ending: Ending::Done, .. } => tally.handled_now(),
        WorkerEvent::Settled { ending: Ending::Unknown | Ending::LeaseLost, .. } => {
            super::tally::add(&tally.unsure);
        }
        _ => {}
    }
}

//! A fresh database with a peer in it, and producers and consumers at work there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::cluster::{Bench, connect};
use crate::cpu;
use crate::figure::Metric;
use crate::meter::{Meter, Reading};
use crate::peer::{Consume, OnAck, Peer};
use crate::pump::Pump;
use crate::tally::{Handler, Tally};

/// How long it may take until a message is handled.
const STALL_LIMIT: Duration = Duration::from_secs(60);

/// How consumers work, where a workload does not say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Connections that read, for peers driven by the client loop.
    pub(crate) pollers: usize,
    /// How many messages each of them reads at once.
    pub(crate) batch: usize,
    /// Handlers at once, for peers with a worker of their own.
    pub(crate) concurrency: usize,
    /// Whether a poller that finds nothing waits the way the peer recommends to quiet consumers.
    pub(crate) is_patient: bool,
}

/// The place and those who work.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    bench: &'a Bench,
    pub(crate) peer: Peer,
    pub(crate) url: String,
    pub(crate) tally: Arc<Tally>,
    pub(crate) pump: Pump,
    on_ack: OnAck,
}

impl<'a> Stage<'a> {
    /// Sets it up in a fresh database.
    pub(crate) async fn fresh(bench: &'a Bench, peer: Peer, on_ack: OnAck) -> Result<Self> {
        let url = bench.fresh(peer).await?;
        peer.set_on_ack(&url, on_ack).await?;
        Ok(Self { on_ack, ..Self::at(bench, peer, url) })
    }

    /// Takes a database that is there already.
    pub(crate) fn at(bench: &'a Bench, peer: Peer, url: String) -> Self {
        Self { bench, peer, url, tally: Arc::default(), pump: Pump::default(), on_ack: OnAck::Delete }
    }

    /// Makes the handler that counts here.
    pub(crate) fn handler(&self, takes: Duration) -> Handler {
        Handler::new(self.tally.clone(), takes)
    }

    /// Adds a consumer.
    pub(crate) fn consume(&mut self, shape: Shape, handler: Handler) {
        let consume = Consume {
            url: self.url.clone(),
            shape,
            on_ack: self.on_ack,
            handler,
            stop: self.pump.stop.clone(),
        };
        self.pump.consume(self.peer, consume);
    }

    /// Adds producers that send flat out.
    pub(crate) async fn flat_out(&mut self, producers: usize, batch: usize) -> Result<()> {
        for _ in 0..producers {
            let producer = self.peer.producer(&self.url).await?;
            self.pump.flat_out(producer, batch, self.tally.clone());
        }
        Ok(())
    }

    /// Puts messages into the queue before anything is measured.
    pub(crate) async fn fill(&self, count: usize) -> Result<()> {
        self.pump.fill(&self.peer.producer(&self.url).await?, count).await
    }

    /// Waits for the first message, lets them work for a quarter of `span`, and measures the `span` that follows.
    pub(crate) async fn measure(&mut self, span: Duration) -> Result<Reading> {
        self.measure_most(span, u64::MAX).await
    }

    /// As [`measure`](Self::measure), but ends early once `most` messages have been handled: all that there are.
    pub(crate) async fn measure_most(&mut self, span: Duration, most: u64) -> Result<Reading> {
        let tally = self.tally.clone();
        self.pump.work_until(STALL_LIMIT, || tally.handled() > 0).await?;
        self.pump.work(span / 4).await?;
        let meter = Meter::start(self.bench.postmaster()?, &self.bench.admin, &self.tally).await?;
        let before = self.tally.handled();
        self.pump.work_until(span, || tally.handled() >= most).await?;
        // A disk that others use may stand still for as long as a short measurement lasts: then it lasts longer.
        self.pump.work_until(STALL_LIMIT, || tally.handled() > before || tally.handled() >= most).await?;
        meter.stop(&self.bench.admin, &self.tally).await
    }

    /// Server CPU in percent of one core, whatever they do.
    pub(crate) async fn cpu_percent(&mut self, span: Duration) -> Result<f64> {
        self.pump.work(span / 4).await?;
        let (started, before) = (Instant::now(), cpu::seconds(self.bench.postmaster()?)?);
        self.pump.work(span).await?;
        let used = cpu::seconds(self.bench.postmaster()?)? - before;
        Ok(used * 100.0 / started.elapsed().as_secs_f64())
    }

    /// The latencies since the measurement began.
    pub(crate) fn latencies(&self) -> Result<[(Metric, f64); 2]> {
        let at = |part| self.tally.latency_ms(part).context("nothing was handled: there is no latency");
        Ok([(Metric::P50, at(0.5)?), (Metric::P99, at(0.99)?)])
    }

    /// How big the queue's table is now, with its indexes, in MB.
    pub(crate) async fn table_mb(&self) -> Result<f64> {
        let client = connect(&self.url).await?;
        let sql = "SELECT pg_total_relation_size(format('%I.%I', $1::text, $2::text)::regclass)";
        let (schema, table) = self.peer.table().context("this peer's queue is not one table")?;
        let bytes: i64 = client.query_one(sql, &[&schema, &table]).await?.get(0);
        Ok(bytes as f64 / 1e6)
    }

    /// Ends all work.
    pub(crate) async fn end(self) -> Result<()> {
        self.pump.end().await
    }
}

//! A steady, moderate load: what the server pays for it.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::cluster::Bench;
use crate::figure::{Figures, Metric, Ratio, Section};
use crate::peer::{OnAck, Peer};
use crate::stage::{Shape, Stage};

const RATE: u32 = 800;
/// One connection could not commit that often on a slow disk.
const PRODUCERS: u32 = 4;
const HANDLERS: usize = 32;
const HANDLER: Duration = Duration::from_millis(1);

/// One poller for each handler, as most client loops are written; and one that reads for all of them.
const EACH: Shape = Shape { pollers: HANDLERS, batch: 1, concurrency: HANDLERS, is_patient: true };
const ONE: Shape = Shape { pollers: 1, batch: HANDLERS, concurrency: HANDLERS, is_patient: true };
const CASE_EACH: &str = "a poller for each handler";
const CASE_ONE: &str = "one reader";

pub(super) fn section(_args: &Args) -> Section {
    let mut ratios = Vec::new();
    for (case, _, peer) in cases() {
        if peer.schema() != "vtq" {
            for metric in [Metric::CpuPercent, Metric::CpuWithoutSends] {
                ratios.push(Ratio::new(metric, (CASE_ONE, Peer::VtqWorker), (case, peer)));
            }
        }
    }
    Section {
        title: "Server CPU at a steady 800 messages/s",
        about: format!(
            "{PRODUCERS} producers send {RATE} messages a second in all, one by one; {HANDLERS} handlers take 1 ms \
             each. PGMQ is read by its long poll, by {HANDLERS} pollers that take one message each, or by one that \
             takes up to {HANDLERS}. Latency is from before the send to the handler's start. Server CPU includes \
             the sends, and is also given less what the same sends took just before, while nobody read."
        ),
        ratios,
        ..Section::default()
    }
}

fn cases() -> impl Iterator<Item = (&'static str, Shape, Peer)> {
    let workers = Peer::ALL.into_iter().filter(|peer| !peer.is_sql()).map(|peer| (CASE_ONE, ONE, peer));
    workers.chain([(CASE_EACH, EACH, Peer::Pgmq), (CASE_ONE, ONE, Peer::Pgmq)])
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    for (case, shape, peer) in cases().filter(|(_, _, peer)| args.wants(*peer)) {
        let values =
            steady(bench, args, shape, peer).await.with_context(|| format!("{case}, {}", peer.name()))?;
        figures.add(case, peer, values);
    }
    Ok(())
}

async fn steady(bench: &Bench, args: &Args, shape: Shape, peer: Peer) -> Result<Vec<(Metric, f64)>> {
    let mut unread = sending(bench, peer).await?;
    let of_sends = unread.cpu_percent(args.span()).await?;
    unread.end().await?;

    let mut stage = sending(bench, peer).await?;
    stage.consume(shape, stage.handler(HANDLER));
    let reading = stage.measure(args.span()).await?;
    let of_all = reading.cpu_percent();
    let mut values = vec![
        (Metric::CpuPercent, of_all),
        (Metric::CpuWithoutSends, of_all - of_sends),
        (Metric::Rate, reading.rate()),
    ];
    values.extend(stage.latencies()?);
    stage.end().await?;
    Ok(values)
}

/// A fresh queue, and producers at work.
async fn sending(bench: &Bench, peer: Peer) -> Result<Stage<'_>> {
    let mut stage = Stage::fresh(bench, peer, OnAck::Delete).await?;
    for _ in 0..PRODUCERS {
        let producer = peer.producer(&stage.url).await?;
        stage.pump.steadily(producer, Duration::from_secs(1) * PRODUCERS / RATE, 1, |_, _| {});
    }
    Ok(stage)
}

//! Some worker processes on one queue.

use anyhow::{Context, Result};

use crate::args::Args;
use crate::child::Child;
use crate::cluster::Bench;
use crate::figure::{Figures, Metric, Ratio, Section};
use crate::peer::{OnAck, Peer};
use crate::stage::{Shape, Stage};

const COUNTS: [usize; 4] = [1, 2, 4, 8];
const PRODUCERS: usize = 2;
const BATCH: usize = 100;
const SHAPE: Shape = Shape { pollers: 1, batch: BATCH, concurrency: 100, is_patient: false };

fn peers() -> impl Iterator<Item = Peer> {
    Peer::ALL.into_iter().filter(|peer| !peer.is_sql() || *peer == Peer::Pgmq)
}

pub(super) fn section(_args: &Args) -> Section {
    let case = |count: usize| format!("{count} processes");
    let mut ratios = Vec::new();
    for count in COUNTS.into_iter().filter(|count| *count != 8) {
        ratios.push(Ratio::new(Metric::Rate, (case(8), Peer::VtqWorker), (case(count), Peer::VtqWorker)));
    }
    for peer in peers().filter(|peer| *peer != Peer::VtqWorker) {
        ratios.extend(
            COUNTS.map(|count| Ratio::new(Metric::Rate, (case(count), Peer::VtqWorker), (case(count), peer))),
        );
    }
    Section {
        title: "Worker processes on one queue",
        about: format!(
            "As under throughput, delete on ack, but each consumer is a process of its own: a worker with {} slots, \
             or one poller that reads {BATCH}.",
            SHAPE.concurrency
        ),
        ratios,
        ..Section::default()
    }
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    for count in args.series(&COUNTS) {
        let case = format!("{count} processes");
        for peer in peers().filter(|peer| args.wants(*peer)) {
            let values = flat_out(bench, args, peer, count)
                .await
                .with_context(|| format!("{case}, {}", peer.name()))?;
            figures.add(&*case, peer, values);
        }
    }
    Ok(())
}

async fn flat_out(bench: &Bench, args: &Args, peer: Peer, count: usize) -> Result<Vec<(Metric, f64)>> {
    let mut stage = Stage::fresh(bench, peer, OnAck::Delete).await?;
    let mut children = Vec::new();
    for _ in 0..count {
        children.push(Child::start(&mut stage, SHAPE, std::time::Duration::ZERO)?);
    }
    stage.flat_out(PRODUCERS, BATCH).await?;
    let reading = stage.measure(args.span()).await?;
    for child in children {
        child.end().await?;
    }
    stage.end().await?;
    Ok(reading.values())
}

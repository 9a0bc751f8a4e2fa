//! A long run with a transaction held open, against the same without.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::cluster::{Bench, connect};
use crate::figure::{Figures, Metric, Ratio, Section};
use crate::peer::{OnAck, Peer};
use crate::stage::{Shape, Stage};

const PEERS: [Peer; 2] = [Peer::VtqWorker, Peer::Pgmq];
const SHAPE: Shape = Shape { pollers: 4, batch: 100, concurrency: 100, is_patient: false };
/// Batches a second: small ones, as they come when many requests send.
const TICKS: u32 = 100;
const PRODUCERS: u32 = 2;

const FREE: &str = "no transaction held";
const HELD: &str = "a transaction held open";

pub(super) fn section(args: &Args) -> Section {
    let mut ratios = Vec::new();
    for peer in PEERS {
        for metric in [Metric::Rate, Metric::P99, Metric::CpuPercent] {
            ratios.push(Ratio::new(metric, (HELD, peer), (FREE, peer)));
        }
    }
    Section {
        title: "A transaction held open",
        about: format!(
            "{} messages a second are sent for {:.0} s, in batches of {}, and handled at once. Meanwhile another \
             session holds a transaction open that has a snapshot, so that vacuum can remove nothing. Latency is from \
             before the send to the handler's start; the table is measured at the end, with its indexes.",
            args.rate,
            args.long_span().as_secs_f64(),
            batch(args)
        ),
        ratios,
        ..Section::default()
    }
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    for peer in PEERS.into_iter().filter(|peer| args.wants(*peer)) {
        for case in [FREE, HELD] {
            let values = steady(bench, args, peer, case == HELD)
                .await
                .with_context(|| format!("{case}, {}", peer.name()))?;
            figures.add(case, peer, values);
        }
    }
    Ok(())
}

async fn steady(bench: &Bench, args: &Args, peer: Peer, is_held: bool) -> Result<Vec<(Metric, f64)>> {
    let mut stage = Stage::fresh(bench, peer, OnAck::Delete).await?;
    let holder = connect(&stage.url).await?;
    if is_held {
        holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()").await?;
    }
    stage.consume(SHAPE, stage.handler(Duration::ZERO));
    for _ in 0..PRODUCERS {
        let producer = peer.producer(&stage.url).await?;
        stage.pump.steadily(producer, every(args), batch(args), |_, _| {});
    }
    let reading = stage.measure(args.long_span()).await?;
    let mut values = vec![(Metric::Rate, reading.rate()), (Metric::CpuPercent, reading.cpu_percent())];
    values.extend(stage.latencies()?);
    values.push((Metric::TableBytes, stage.table_mb().await?));
    stage.end().await?;
    Ok(values)
}

/// How many messages one producer sends at a tick.
fn batch(args: &Args) -> usize {
    (args.rate / PRODUCERS / TICKS).max(1) as usize
}

/// How long a tick of one producer is, so that all of them together keep the rate.
fn every(args: &Args) -> Duration {
    Duration::from_secs_f64(batch(args) as f64 * f64::from(PRODUCERS) / f64::from(args.rate))
}

//! Send, handle and ack, flat out.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::cluster::Bench;
use crate::figure::{Figures, Metric, Ratio, Section};
use crate::meter::Reading;
use crate::peer::{OnAck, Peer};
use crate::stage::{Shape, Stage};

const BATCH: usize = 100;
const PRODUCERS: usize = 2;
/// Slots of a peer with a worker of its own.
const SLOTS: usize = 200;

const DELETE: &str = "delete on ack";
const CASES: [(&str, OnAck); 2] = [(DELETE, OnAck::Delete), ("archive on ack", OnAck::Archive)];
/// Nobody reads: what remains of a message's cost if all else cost nothing.
const SENDS: &str = "sends alone";
const SENDERS: [Peer; 3] = [Peer::VtqWorker, Peer::Pgmq, Peer::Bare];

const METRICS: [Metric; 3] = [Metric::Rate, Metric::CpuPerMessage, Metric::WalPerMessage];

pub(super) fn section(args: &Args) -> Section {
    let mut ratios = Vec::new();
    for (case, on_ack) in CASES {
        for peer in Peer::ALL.into_iter().filter(|peer| peer.schema() != "vtq" && peer.can(on_ack)) {
            // The worker is how vtq is meant to be used. SQL is also set against SQL, by the same client loop.
            let drivers =
                if peer.is_sql() { &[Peer::VtqWorker, Peer::VtqSql][..] } else { &[Peer::VtqWorker] };
            for (vtq, metric) in drivers.iter().flat_map(|vtq| METRICS.map(|metric| (*vtq, metric))) {
                ratios.push(Ratio::new(metric, (case, vtq), (case, peer)));
            }
        }
    }
    // What bounds the ratios above: a loop that does no more than it must, and the sends.
    ratios.push(Ratio::new(Metric::Rate, (DELETE, Peer::Bare), (DELETE, Peer::Pgmq)));
    ratios.push(Ratio::new(Metric::CpuPerMessage, (DELETE, Peer::Bare), (DELETE, Peer::Pgmq)));
    ratios.push(Ratio::new(Metric::CpuPerMessage, (SENDS, Peer::VtqWorker), (DELETE, Peer::VtqWorker)));
    ratios.push(Ratio::new(Metric::CpuPerMessage, (SENDS, Peer::VtqWorker), (DELETE, Peer::Pgmq)));
    Section {
        title: "Throughput",
        about: format!(
            "Messages of 200 bytes are sent, handled and acked flat out, at most 5,000 waiting: {PRODUCERS} producers \
             that send {BATCH} at once; where the peer is SQL, {} pollers that read {BATCH}, handle and settle them, \
             and else a worker with {} slots. Server CPU is that of all processes of the server. Under \"{SENDS}\" \
             nobody reads.",
            args.pollers, SLOTS
        ),
        ratios,
        ..Section::default()
    }
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    for (case, on_ack) in CASES {
        for peer in Peer::ALL.into_iter().filter(|peer| args.wants(*peer) && peer.can(on_ack)) {
            let reading = flat_out(bench, args, peer, on_ack)
                .await
                .with_context(|| format!("{case}, {}", peer.name()))?;
            figures.add(case, peer, reading.values());
        }
    }
    for peer in SENDERS.into_iter().filter(|peer| args.wants(*peer)) {
        let reading = sends(bench, args, peer).await.with_context(|| format!("{SENDS}, {}", peer.name()))?;
        figures.add(SENDS, peer, reading.values());
    }
    Ok(())
}

async fn sends(bench: &Bench, args: &Args, peer: Peer) -> Result<Reading> {
    let mut stage = Stage::fresh(bench, peer, OnAck::Delete).await?;
    stage.flat_out(PRODUCERS, BATCH).await?;
    stage.pump.count_sent(stage.tally.clone());
    let reading = stage.measure(args.span()).await?;
    stage.end().await?;
    Ok(reading)
}

async fn flat_out(bench: &Bench, args: &Args, peer: Peer, on_ack: OnAck) -> Result<Reading> {
    let mut stage = Stage::fresh(bench, peer, on_ack).await?;
    stage.flat_out(PRODUCERS, BATCH).await?;
    let shape = Shape { pollers: args.pollers.into(), batch: BATCH, concurrency: SLOTS, is_patient: false };
    stage.consume(shape, stage.handler(Duration::ZERO));
    let reading = stage.measure(args.span()).await?;
    stage.end().await?;
    Ok(reading)
}

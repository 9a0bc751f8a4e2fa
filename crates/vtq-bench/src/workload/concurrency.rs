//! One worker process whose handlers take 1 ms, from few slots to many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::future::join_all;

use crate::args::Args;
use crate::body::Body;
use crate::cluster::Bench;
use crate::figure::{Figures, Metric, Ratio, Section, Who};
use crate::peer::{OnAck, Peer};
use crate::stage::{Shape, Stage};
use crate::tally::{Handler, Tally};

const SLOTS: [usize; 6] = [4, 16, 64, 128, 256, 512];
const HANDLER: Duration = Duration::from_millis(1);
/// The same handlers with no queue: what the timer and this machine allow.
const ALONE: Who = Who("handlers alone");

pub(super) fn section(_args: &Args) -> Section {
    let case = |slots: usize| format!("{slots} slots");
    let mut ratios = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|peer| !peer.is_sql()) {
        if peer == Peer::VtqWorker {
            for slots in SLOTS {
                ratios.push(Ratio::new(Metric::Rate, (case(slots), peer), (case(slots), ALONE)));
            }
            for slots in SLOTS.into_iter().filter(|slots| *slots != 512) {
                ratios.push(Ratio::new(Metric::Rate, (case(512), peer), (case(slots), peer)));
            }
        } else {
            for slots in SLOTS {
                ratios.push(Ratio::new(Metric::Rate, (case(slots), Peer::VtqWorker), (case(slots), peer)));
            }
        }
    }
    Section {
        title: "One worker process, handlers of 1 ms",
        about: "The messages wait in the queue beforehand; one process handles them with a timer of 1 ms each, and \
                deletes them. \"Handlers alone\" is the same timer with no queue."
            .into(),
        ratios,
        ..Section::default()
    }
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    for slots in args.series(&SLOTS) {
        let case = format!("{slots} slots");
        figures.add(&*case, ALONE, vec![(Metric::Rate, alone(slots, args.span()).await)]);
        for peer in Peer::ALL.into_iter().filter(|peer| !peer.is_sql() && args.wants(*peer)) {
            let values =
                drain(bench, args, peer, slots).await.with_context(|| format!("{case}, {}", peer.name()))?;
            figures.add(&*case, peer, values);
        }
    }
    Ok(())
}

async fn drain(bench: &Bench, args: &Args, peer: Peer, slots: usize) -> Result<Vec<(Metric, f64)>> {
    let mut stage = Stage::fresh(bench, peer, OnAck::Delete).await?;
    let most_rate = (slots as f64 * 1000.0).min(most_rate(peer));
    let backlog = (most_rate * args.span().as_secs_f64() * 1.5) as u64;
    stage.fill(usize::try_from(backlog)?).await?;
    let shape = Shape { pollers: 1, batch: slots, concurrency: slots, is_patient: false };
    stage.consume(shape, stage.handler(HANDLER));
    let reading = stage.measure_most(args.span(), backlog).await?;
    stage.end().await?;
    Ok(vec![
        (Metric::Rate, reading.rate()),
        (Metric::CpuPerMessage, reading.cpu_s * 1e6 / reading.handled as f64),
    ])
}

/// About what a peer may reach here, a second: so many messages are made. When they run out, the measurement ends.
fn most_rate(peer: Peer) -> f64 {
    if peer == Peer::VtqWorker { 60_000.0 } else { 15_000.0 }
}

async fn alone(slots: usize, span: Duration) -> f64 {
    let tally = Arc::new(Tally::default());
    let handler = Handler::new(tally.clone(), HANDLER);
    let started = Instant::now();
    let tasks = (0..slots).map(|_| {
        let handler = handler.clone();
        tokio::spawn(async move {
            while started.elapsed() < span {
                handler.handle(Body::new(0)).await;
            }
        })
    });
    join_all(tasks).await;
    tally.handled() as f64 / started.elapsed().as_secs_f64()
}

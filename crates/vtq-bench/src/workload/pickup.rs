//! How soon a message is picked up: from the answer to its commit to its handler's start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::args::Args;
use crate::body::{Body, now_us};
use crate::cluster::Bench;
use crate::figure::{Figures, Metric, Ratio, Section};
use crate::notify::Listener;
use crate::peer::{OnAck, Peer};
use crate::stage::{Shape, Stage};
use crate::tally::histogram;

const SHAPE: Shape = Shape { pollers: 1, batch: 32, concurrency: 32, is_patient: true };
/// Messages a second, and in how many sends: each single up to a hundred a second, then in small batches.
const RATES: [(u32, u32); 4] = [(10, 10), (100, 100), (1000, 100), (10_000, 100)];
/// How long a queue is left alone before it counts as idle: twice what vtq's worker lingers before it sleeps.
const IDLE: Duration = Duration::from_secs(2);
const IDLE_CASE: &str = "idle";

type Times = Arc<Mutex<HashMap<i64, i64>>>;

pub(super) fn section(_args: &Args) -> Section {
    let mut ratios = Vec::new();
    for peer in peers().filter(|peer| *peer != Peer::VtqWorker) {
        for case in cases() {
            for metric in [Metric::P50, Metric::P99] {
                ratios.push(Ratio::new(metric, (&*case, Peer::VtqWorker), (&*case, peer)));
            }
        }
    }
    Section {
        title: "Pickup latency",
        about: format!(
            "From the instant the sender knows that its message is committed to the start of its handler, which \
             deletes it at once. Idle: one message every {} s. From 1,000 messages a second on they are sent 100 times \
             a second. NOTIFYs are those on vtq's channel during the measurement.",
            IDLE.as_secs()
        ),
        ratios,
        ..Section::default()
    }
}

fn peers() -> impl Iterator<Item = Peer> {
    Peer::ALL.into_iter().filter(|peer| !peer.is_sql() || *peer == Peer::Pgmq)
}

fn cases() -> impl Iterator<Item = String> {
    std::iter::once(IDLE_CASE.to_owned()).chain(RATES.iter().map(|(rate, _)| format!("{rate}/s")))
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    let samples = (args.span().as_secs_f64() / IDLE.as_secs_f64()).ceil().max(2.0);
    let idle_span = IDLE.mul_f64(samples + 0.5);
    let paces = std::iter::once((IDLE, 1, idle_span)).chain(
        RATES.map(|(rate, ticks)| (Duration::from_secs(1) / ticks, (rate / ticks) as usize, args.span())),
    );
    for (case, (every, batch, span)) in cases().zip(paces) {
        for peer in peers().filter(|peer| args.wants(*peer)) {
            let values = pick_up(bench, peer, every, batch, span)
                .await
                .with_context(|| format!("{case}, {}", peer.name()))?;
            figures.add(&*case, peer, values);
        }
    }
    Ok(())
}

async fn pick_up(
    bench: &Bench,
    peer: Peer,
    every: Duration,
    batch: usize,
    span: Duration,
) -> Result<Vec<(Metric, f64)>> {
    let mut stage = Stage::fresh(bench, peer, OnAck::Delete).await?;
    let (committed, started) = (Times::default(), Times::default());
    let starts = started.clone();
    let handler = stage.handler(Duration::ZERO).on_start(move |body: &Body| {
        lock(&starts).insert(body.n, now_us());
    });
    stage.consume(SHAPE, handler);
    // The worker has to be there, and, when the queue is idle, asleep.
    stage.pump.work(every.max(Duration::from_millis(500))).await?;
    let listener = if peer == Peer::VtqWorker { Some(Listener::start(&stage.url).await?) } else { None };
    let commits = committed.clone();
    let producer = peer.producer(&stage.url).await?;
    stage.pump.steadily(producer, every, batch, move |first, count| {
        let now = now_us();
        lock(&commits).extend((first..).take(count).map(|n| (n, now)));
    });
    stage.pump.work(span).await?;
    let heard = listener.map(|listener| listener.heard());
    stage.end().await?;

    let mut values = quantiles(&lock(&committed), &lock(&started))?;
    if let Some(heard) = heard {
        values.push((Metric::Notifies, heard as f64));
    }
    Ok(values)
}

/// A handler that starts before the sender has its answer was there at once.
fn quantiles(committed: &HashMap<i64, i64>, started: &HashMap<i64, i64>) -> Result<Vec<(Metric, f64)>> {
    let mut histogram = histogram();
    for (n, start) in started {
        if let Some(commit) = committed.get(n) {
            histogram.saturating_record(u64::try_from(start - commit).unwrap_or(0));
        }
    }
    ensure!(!histogram.is_empty(), "nothing was picked up");
    let at = |part| histogram.value_at_quantile(part) as f64 / 1000.0;
    Ok(vec![(Metric::P50, at(0.5)), (Metric::P99, at(0.99))])
}

fn lock(times: &Times) -> std::sync::MutexGuard<'_, HashMap<i64, i64>> {
    times.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_still_waiting_is_not_counted() {
        let committed = HashMap::from([(1, 1000), (2, 1000), (3, 1000)]);
        let started = HashMap::from([(1, 3000), (2, 900)]);

        let values = quantiles(&committed, &started).unwrap_or_default();

        assert_eq!(values.first(), Some(&(Metric::P50, 0.0)));
        assert!(values.get(1).is_some_and(|(_, p99)| (1.9..2.1).contains(p99)), "{values:?}");
    }
}

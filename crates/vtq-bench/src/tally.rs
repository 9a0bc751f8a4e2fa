//! What consumers count: messages, and how long each was under way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::body::{Body, now_us};
use crate::timer;

/// Counts what is handled.
#[derive(Debug)]
pub(crate) struct Tally {
    handled: AtomicU64,
    latency: Mutex<Histogram<u64>>,
}

impl Default for Tally {
    fn default() -> Self {
        Self { handled: AtomicU64::new(0), latency: Mutex::new(histogram()) }
    }
}

impl Tally {
    /// How many messages were handled so far.
    pub(crate) fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    /// Counts what another process has handled.
    pub(crate) fn add(&self, count: u64) {
        self.handled.fetch_add(count, Ordering::Relaxed);
    }

    /// Forgets the latencies so far: of the warm-up.
    pub(crate) fn forget_latencies(&self) {
        self.latency.lock().unwrap_or_else(PoisonError::into_inner).reset();
    }

    /// The latency, from making the message to its handler, that this part of the messages does not exceed, in ms;
    /// none when nothing was handled.
    pub(crate) fn latency_ms(&self, part: f64) -> Option<f64> {
        let latency = self.latency.lock().unwrap_or_else(PoisonError::into_inner);
        (!latency.is_empty()).then(|| latency.value_at_quantile(part) as f64 / 1000.0)
    }

    fn count(&self, body: &Body) {
        let took_us = u64::try_from(now_us() - body.at).unwrap_or(0);
        self.latency.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(took_us);
        self.handled.fetch_add(1, Ordering::Relaxed);
    }
}

/// A histogram of microseconds, up to an hour, with three digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(3_600_000_000, 3).expect("these bounds are allowed")
}

type Hook = dyn Fn(&Body) + Send + Sync;

/// What runs for each message, the same for every peer: counts, and takes its time.
#[derive(Clone)]
pub(crate) struct Handler {
    tally: Arc<Tally>,
    takes: Duration,
    hook: Option<Arc<Hook>>,
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handler").field("takes", &self.takes).finish_non_exhaustive()
    }
}

impl Handler {
    pub(crate) fn new(tally: Arc<Tally>, takes: Duration) -> Self {
        Self { tally, takes, hook: None }
    }

    /// Also calls `hook` at the start of each run.
    pub(crate) fn on_start(mut self, hook: impl Fn(&Body) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Handles a message.
    pub(crate) async fn handle(&self, body: Body) {
        if let Some(hook) = &self.hook {
            hook(&body);
        }
        self.tally.count(&body);
        if !self.takes.is_zero() {
            timer::sleep(self.takes).await;
        }
    }

    /// Whether handling takes any time; if not, a batch need not be spread over tasks.
    pub(crate) fn is_instant(&self) -> bool {
        self.takes.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn latency_counts_from_the_making_of_the_message() {
        let tally = Arc::new(Tally::default());
        let mut body = Body::new(0);
        body.at -= 250_000;

        Handler::new(tally.clone(), Duration::ZERO).handle(body).await;

        assert_eq!(tally.handled(), 1);
        assert!(tally.latency_ms(0.99).is_some_and(|ms| (249.0..2000.0).contains(&ms)));
    }
}

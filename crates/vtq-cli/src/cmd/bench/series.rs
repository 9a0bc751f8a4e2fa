//! What was measured second by second.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::tally::{Tally, read};

/// A last second that is shorter than this is not shown: its rates would mean little.
const SHORTEST: Duration = Duration::from_millis(500);

/// The counts at one instant.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    at: Duration,
    sent: u64,
    handled: u64,
    latency: Option<(u64, u64)>,
    pub(super) table_bytes: Option<u64>,
    pub(super) dead_rows: Option<u64>,
}

/// What happened between two instants, about a second apart.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Second {
    /// The end of it, since the clock started.
    pub(super) at_ms: u64,
    pub(super) sent_per_second: f64,
    pub(super) handled_per_second: f64,
    /// Null when no message of the run was handled.
    pub(super) latency_p50_us: Option<u64>,
    pub(super) latency_p99_us: Option<u64>,
    pub(super) table_bytes: Option<u64>,
    pub(super) dead_rows: Option<u64>,
    /// Sent or put in, and not handled; without the delayed.
    #[serde(skip)]
    pub(super) sent: u64,
    #[serde(skip)]
    pub(super) handled: u64,
}

/// Second after second.
#[derive(Debug, Default)]
pub(super) struct Series {
    seconds: Vec<Second>,
    last: Option<Sample>,
}

impl Sample {
    /// Reads the counts; the histogram has the waits since the sample before.
    pub(super) fn new(at: Duration, tally: &Tally, waits: &Histogram<u64>) -> Self {
        let latency =
            (!waits.is_empty()).then(|| (waits.value_at_quantile(0.5), waits.value_at_quantile(0.99)));
        let (sent, handled) = (read(&tally.sent), read(&tally.handled));
        Self { at, sent, handled, latency, table_bytes: None, dead_rows: None }
    }
}

impl Series {
    /// Adds a sample, and returns what happened since the one before.
    pub(super) fn push(&mut self, sample: Sample) -> Second {
        let (before, sent, handled) =
            self.last.as_ref().map_or((Duration::ZERO, 0, 0), |last| (last.at, last.sent, last.handled));
        let length = sample.at.saturating_sub(before);
        let rate = |number: u64| round(number as f64 / length.as_secs_f64().max(1e-6));
        let second = Second {
            at_ms: u64::try_from(sample.at.as_millis()).unwrap_or(u64::MAX),
            sent_per_second: rate(sample.sent - sent),
            handled_per_second: rate(sample.handled - handled),
            latency_p50_us: sample.latency.map(|(p50, _)| p50),
            latency_p99_us: sample.latency.map(|(_, p99)| p99),
            table_bytes: sample.table_bytes,
            dead_rows: sample.dead_rows,
            sent: sample.sent,
            handled: sample.handled,
        };
        if length >= SHORTEST || self.seconds.is_empty() {
            self.seconds.push(second.clone());
            self.last = Some(sample);
        }
        second
    }

    pub(super) fn seconds(&self) -> &[Second] {
        &self.seconds
    }
}

/// A tenth is as exact as a rate gets.
pub(super) fn round(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(millis: u64, sent: u64, handled: u64) -> Sample {
        let at = Duration::from_millis(millis);
        Sample { at, sent, handled, latency: None, table_bytes: None, dead_rows: None }
    }

    #[test]
    fn rates_are_of_the_time_that_went_by() {
        let mut series = Series::default();

        series.push(sample(1000, 100, 50));
        let second = series.push(sample(3000, 300, 350));

        assert_eq!((second.sent_per_second, second.handled_per_second), (100.0, 150.0));
        assert_eq!(series.seconds().len(), 2);
    }

    #[test]
    fn a_short_end_is_left_out_unless_it_is_all() {
        let mut series = Series::default();
        series.push(sample(300, 3, 3));
        assert_eq!(series.seconds().len(), 1);

        series.push(sample(1300, 13, 13));
        series.push(sample(1400, 14, 14));

        assert_eq!(series.seconds().len(), 2);
    }
}

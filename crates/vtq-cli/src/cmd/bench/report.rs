//! The result of a run, as `--json` prints it; lengths and sizes have their unit in the name.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::sampler::Seen;
use super::series::{Second, round};
use super::tally::{Tally, read};
use crate::args::bench::BenchArgs;
use crate::output::millis;

/// Everything that was measured. Null: not visible from here, or nothing to measure.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) queue: String,
    pub(super) kept: bool,
    pub(super) interrupted: bool,
    pub(super) server: ServerFacts,
    pub(super) settings: Settings,
    /// From the start of the clock to the last message handled, or to the end of sending when that came later; to the
    /// end of the run when messages were left.
    pub(super) elapsed_ms: u64,
    pub(super) sending_ms: u64,
    pub(super) sent: u64,
    pub(super) handled: u64,
    /// Neither handled nor dead at the end, without the delayed.
    pub(super) left: u64,
    pub(super) delayed: u64,
    pub(super) dead: u64,
    /// Deliveries after the first.
    pub(super) redelivered: u64,
    /// Messages in the queue that were not of this run.
    pub(super) foreign: u64,
    /// While it was sent.
    pub(super) sent_per_second: f64,
    /// In all that time.
    pub(super) handled_per_second: f64,
    /// From the commit of a send to the start of the handler; the backlog does not count.
    pub(super) latency: Option<Quantiles>,
    /// What one send of a batch took.
    pub(super) send: Option<Quantiles>,
    /// What the figures "per message" are divided by: the messages handled, or sent, whichever are more.
    pub(super) messages: u64,
    /// CPU of the server's processes that served this run's senders and workers.
    pub(super) backend_cpu_us_per_message: Option<f64>,
    /// CPU of all processes of the server, whoever they worked for.
    pub(super) server_cpu_us_per_message: Option<f64>,
    /// CPU of this process: senders, workers, measuring.
    pub(super) client_cpu_us_per_message: Option<f64>,
    /// Of the whole server, whoever wrote it.
    pub(super) wal_bytes: Option<u64>,
    pub(super) wal_bytes_per_message: Option<f64>,
    /// Of the live table, as the server's statistics count them.
    pub(super) dead_rows_max: Option<u64>,
    pub(super) table_bytes_max: Option<u64>,
    /// With the indexes.
    pub(super) total_bytes_max: Option<u64>,
    pub(super) notifications: Option<u64>,
    pub(super) compactions: Option<u64>,
    /// Whether the server has let the snapshot be until the end; null: none was asked for.
    pub(super) snapshot_held: Option<bool>,
    pub(super) series: Vec<Second>,
}

/// What the run was told to do.
#[derive(Debug, Serialize)]
pub(super) struct Settings {
    pub(super) producers: u16,
    pub(super) workers: u16,
    pub(super) concurrency: u16,
    pub(super) payload_bytes: u32,
    pub(super) batch: u32,
    pub(super) rate_per_second: Option<f64>,
    pub(super) handler_time_ms: u64,
    pub(super) duration_ms: Option<u64>,
    pub(super) on_ack: String,
    pub(super) backlog: u64,
    pub(super) delayed: u64,
    pub(super) hold_snapshot: bool,
}

/// What the server is, as far as the figures depend on it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ServerFacts {
    pub(super) version: String,
    pub(super) fsync: String,
    pub(super) synchronous_commit: String,
}

/// Lengths of time, the shortest first.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Quantiles {
    pub(super) count: u64,
    pub(super) p50_us: u64,
    pub(super) p90_us: u64,
    pub(super) p99_us: u64,
    pub(super) p999_us: u64,
    pub(super) max_us: u64,
}

/// What a run comes to, apart from what was counted while it lasted.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) interrupted: bool,
    pub(super) sending: Duration,
    pub(super) elapsed: Duration,
    pub(super) left: u64,
    pub(super) delayed: u64,
    pub(super) dead: u64,
    pub(super) on_ack: String,
    pub(super) snapshot_held: Option<bool>,
    pub(super) server: ServerFacts,
}

impl Report {
    pub(super) fn new(queue: &str, args: &BenchArgs, tally: &Tally, seen: Seen, ending: Ending) -> Self {
        let (sent, handled) = (read(&tally.sent), read(&tally.handled));
        let messages = sent.max(handled);
        let each = |number: f64| (messages > 0).then(|| round(number / messages as f64));
        let cpu = |used: Option<Duration>| each(used?.as_secs_f64() * 1e6);
        let rate = |number: u64, length: Duration| round(number as f64 / length.as_secs_f64().max(1e-6));
        Self {
            queue: queue.to_owned(),
            kept: args.keep,
            interrupted: ending.interrupted,
            server: ending.server,
            settings: Settings::new(args, ending.on_ack),
            elapsed_ms: millis(ending.elapsed),
            sending_ms: millis(ending.sending),
            sent,
            handled,
            left: ending.left,
            delayed: ending.delayed,
            dead: ending.dead,
            redelivered: read(&tally.redelivered),
            foreign: read(&tally.foreign),
            sent_per_second: rate(sent, ending.sending),
            handled_per_second: rate(handled, ending.elapsed),
            latency: Quantiles::of(&tally.waits.all()),
            send: Quantiles::of(&tally.sends.all()),
            messages,
            backend_cpu_us_per_message: cpu(seen.own_cpu),
            server_cpu_us_per_message: cpu(seen.server_cpu),
            client_cpu_us_per_message: cpu(seen.client_cpu),
            wal_bytes: seen.wal_bytes,
            wal_bytes_per_message: seen.wal_bytes.and_then(|bytes| each(bytes as f64)),
            dead_rows_max: seen.dead_rows_max,
            table_bytes_max: seen.table_bytes_max,
            total_bytes_max: seen.total_bytes_max,
            notifications: seen.notifications,
            compactions: seen.compactions,
            snapshot_held: ending.snapshot_held,
            series: seen.series.seconds().to_vec(),
        }
    }

    /// What whoever reads the figures should know about them.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.interrupted {
            remarks.push("interrupted: the figures are of the run until then".into());
        }
        // The last message of each sender may have been due at the very end.
        if let Some(rate) = self.settings.rate_per_second
            && !self.interrupted
            && ((self.sent + u64::from(self.settings.producers)) as f64)
                < rate * self.sending_ms as f64 / 1e3 * 0.95
        {
            remarks.push(format!(
                "the rate of {rate}/s was not reached: give more --producers or a larger --batch, unless the server \
                 is at its end"
            ));
        }
        if self.left > 0 && self.settings.workers > 0 && !self.interrupted {
            let over = if self.settings.producers > 0 { "--drain-timeout" } else { "--duration" };
            remarks.push(format!("{} messages were left when {over} was over", self.left));
        }
        if self.snapshot_held == Some(false) {
            remarks.push("the server has ended the held snapshot before the end of the run".into());
        }
        if self.foreign > 0 {
            remarks.push(format!("{} messages in the queue were sent by somebody else", self.foreign));
        }
        remarks
    }
}

impl Settings {
    fn new(args: &BenchArgs, on_ack: String) -> Self {
        Self {
            producers: args.producers,
            workers: args.workers,
            concurrency: args.concurrency,
            payload_bytes: args.payload_size,
            batch: args.batch,
            rate_per_second: args.rate,
            handler_time_ms: millis(args.handler_time),
            duration_ms: args.limit().map(millis),
            on_ack,
            backlog: args.backlog,
            delayed: args.delayed,
            hold_snapshot: args.hold_snapshot,
        }
    }
}

impl Quantiles {
    fn of(lengths: &Histogram<u64>) -> Option<Self> {
        let at = |quantile| lengths.value_at_quantile(quantile);
        (!lengths.is_empty()).then(|| Self {
            count: lengths.len(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: lengths.max(),
        })
    }
}

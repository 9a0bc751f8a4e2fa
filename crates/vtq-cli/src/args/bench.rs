//! `vtq bench`.

use std::path::PathBuf;
use std::time::Duration;

use vtq::QueueName;

use super::length::length;
use super::queue::OnAck;

/// The fewest bytes of a message: what says whose it is and when it was sent.
pub(crate) const LEAST_PAYLOAD: u32 = 80;
/// The most bytes of a message, and of a batch.
const MOST_PAYLOAD: u32 = 10 * 1024 * 1024;
/// How long messages are sent if nothing is said.
const DURATION: Duration = Duration::from_secs(10);
const MOST_BATCH_BYTES: u64 = 32 * 1024 * 1024;

/// Measure what this database does: throughput, latency, CPU, WAL, bloat.
///
/// Sends messages to a queue of its own, has workers in this process handle them, and drops the queue at the end.
/// Latency is from the moment a sender has the answer that its batch is committed to the start of the handler; both
/// clocks are this process's. Flat out, messages pile up as soon as senders are faster than workers, and the latency
/// is the length of the line: give --rate to see the latency at a load.
///
/// It loads the server as much as it can, and everything else on it feels that. The figures of the server count what
/// others do there meanwhile.
///
/// Ctrl-C ends the run early, prints what was measured and drops the queue; a second one leaves the queue behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  vtq bench
  vtq bench --rate 2000 --batch 1 --duration 1m --plot bench.svg
  vtq bench --producers 4 --workers 2 --on-ack delete --json
  vtq bench --producers 0 --backlog 200000
  vtq bench --hold-snapshot --delayed 1000000 --duration 5m")]
pub(crate) struct BenchArgs {
    /// Senders, each with a connection of its own and one batch under way; 0: only the backlog is handled
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=256))]
    pub(crate) producers: u16,
    /// Workers, each an engine with connections of its own; 0: messages are only sent
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=64))]
    pub(crate) workers: u16,
    /// Handlers that run at once in each worker
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) concurrency: u16,
    /// Length of a message, as JSON text, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 200, value_parser = payload_size, allow_negative_numbers = true)]
    pub(crate) payload_size: u32,
    /// Messages that a sender sends at once; with --rate, the most that it does
    ///
    /// 1 to 100000; all of a batch must fit into 32 MiB.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: u32,
    /// Messages a second, by all senders together; fractions do [default: as many as they can]
    #[arg(long, value_name = "R", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: Option<f64>,
    /// How long a handler takes; it sleeps
    #[arg(long, value_name = "LENGTH", default_value = "0", value_parser = length)]
    pub(crate) handler_time: Duration,
    /// How long messages are sent [default: 10s; with --producers 0, until the backlog is handled]
    #[arg(long, value_name = "LENGTH", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// How long workers may take afterwards to handle what is left
    #[arg(long, value_name = "LENGTH", default_value = "30s", value_parser = length)]
    pub(crate) drain_timeout: Duration,
    /// What becomes of a message that is done [default: archive]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_ack: Option<OnAck>,
    /// Put in this many messages before the clock starts, due at once
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=100_000_000))]
    pub(crate) backlog: u64,
    /// Put in this many messages before the clock starts, due in a day
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=100_000_000))]
    pub(crate) delayed: u64,
    /// Hold a snapshot open all the while, as a forgotten transaction does: vacuum removes nothing
    #[arg(long)]
    pub(crate) hold_snapshot: bool,
    /// Name of the queue [default: bench- and a number that is new each time]
    ///
    /// One that is there already is refused, unless an earlier bench has made it: that one is dropped and made anew.
    /// A queue of yours is never used.
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Option<QueueName>,
    /// Leave the queue in the database, with what is in it
    #[arg(long)]
    pub(crate) keep: bool,
    /// Draw throughput and latency over time into this file, an .svg
    #[arg(long, value_name = "PATH", value_parser = plot_path)]
    pub(crate) plot: Option<PathBuf>,
}

impl BenchArgs {
    /// How long the clock runs at most; `None`: until the backlog is handled.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.duration.or_else(|| (self.producers > 0).then_some(DURATION))
    }

    /// Finds options that make no sense together.
    pub(crate) fn check(&self) -> Result<(), String> {
        let bytes = u64::from(self.batch) * u64::from(self.payload_size);
        if bytes > MOST_BATCH_BYTES {
            return Err(format!(
                "a batch of {} messages of {} bytes is {bytes} bytes, and must not be more than \
                 {MOST_BATCH_BYTES}: lower --batch or --payload-size",
                self.batch, self.payload_size
            ));
        }
        match (self.producers, self.workers, self.backlog) {
            (0, 0, _) => {
                Err("--producers 0 and --workers 0 leave nothing to measure: give one of them".into())
            }
            (0, _, 0) => Err("--producers 0 leaves nothing to handle: give a --backlog".into()),
            (0, ..) if self.rate.is_some() => Err("--rate needs a sender, and --producers is 0".into()),
            _ => Ok(()),
        }
    }
}

fn payload_size(text: &str) -> Result<u32, String> {
    let bytes = text.parse().ok().filter(|bytes| (LEAST_PAYLOAD..=MOST_PAYLOAD).contains(bytes));
    bytes.ok_or_else(|| {
        format!(
            "a message has {LEAST_PAYLOAD} to {MOST_PAYLOAD} bytes; fewer cannot hold the mark of the run and \
             the place of the instant it was sent"
        )
    })
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.01..=1e7).contains(rate));
    rate.ok_or_else(|| "a rate is 0.01 to 10000000 messages a second; leave it out to send flat out".into())
}

fn duration(text: &str) -> Result<Duration, String> {
    let length = length(text)?;
    let range = Duration::from_millis(100)..=Duration::from_secs(24 * 3600);
    if range.contains(&length) { Ok(length) } else { Err("a run lasts 100ms to 24h".into()) }
}

fn plot_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_svg = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
    if is_svg { Ok(path) } else { Err("the picture is an SVG: give a path that ends in .svg".into()) }
}

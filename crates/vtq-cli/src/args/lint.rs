//! `vtq lint` and `vtq backoff`.

use std::time::Duration;

use vtq::QueueName;

use super::length::length;

/// Check the settings of queues: what contradicts, what is doubtful.
///
/// Says of each queue too how long a message that always fails takes to the dead letters. What contradicts is refused
/// when a queue is created or changed; a queue of an older vtq may still have it. Exits with 0 when there is nothing
/// but notes, with 1 for warnings, with 2 for errors.
#[derive(Debug, clap::Args)]
pub(crate) struct LintArgs {
    /// Name of the queue [default: all]
    #[arg(value_name = "QUEUE")]
    pub(crate) name: Option<QueueName>,
    /// How long your workers let runs go on when they stop, as in `vtq start --drain-timeout`
    ///
    /// Default: theirs, and then a run that may last longer is only noted.
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) drain: Option<Duration>,
    /// How long after its sending a message is worth a retry, to compare with the sum of the waits
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) deadline: Option<Duration>,
}

/// Simulate a backoff: how long messages wait, and how many come back at once.
///
/// All messages fail at the same instant, as they do in an outage, and go on failing. WAIT is the wait after each
/// failure, SINCE the time since the first one when the message is due again, PEAK the most messages that come back
/// within one second and within a tenth of one. A run takes no time here, which is the worst case.
#[derive(Debug, clap::Args)]
pub(crate) struct BackoffArgs {
    /// Name of the queue whose backoff it is
    #[arg(value_name = "QUEUE", required_unless_present = "policy", conflicts_with = "policy")]
    pub(crate) name: Option<QueueName>,
    /// A backoff in place of a queue's, as JSON, lengths in seconds
    ///
    /// Such as '{"kind": "exponential", "base": 1, "max": 60, "jitter": "full"}'. What is left out is the default's.
    #[arg(long, value_name = "JSON")]
    pub(crate) policy: Option<String>,
    /// Failures in a row
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) failures: u16,
    /// Messages to simulate
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) runs: u32,
    /// Messages that fail together, for the peaks [default: as many as are simulated]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub(crate) messages: Option<u32>,
}

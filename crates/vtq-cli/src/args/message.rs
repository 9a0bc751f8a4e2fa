//! The commands about single messages: reading, settling, cancelling, hurrying, looking back.

use std::time::Duration;

use vtq::QueueName;

use super::length::length;

/// How many messages a read or a peek takes.
fn qty() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=10_000)
}

/// Lease messages: print them, and hide them for the visibility timeout.
///
/// A message a line: its lease, ID:READ_CT, a tab, and the message. The lease is what `vtq ack` and the other
/// settling commands take. A message that is not settled in time is handed out again.
///
/// Exits with 1 when there is nothing to read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  vtq read orders | while IFS=$(printf '\\t') read -r lease message; do
    if handle \"$message\"; then vtq ack orders \"$lease\"; else vtq fail orders \"$lease\"; fi
  done")]
pub(crate) struct ReadArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// Most messages to read, 1 to 10000
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = qty(), allow_negative_numbers = true)]
    pub(crate) qty: u16,
    /// How long to hide them, 1ms to 12h [default: the queue's, 30s unless set]
    #[arg(long, alias = "visibility-timeout", value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) vt: Option<Duration>,
}

/// Show what a read would hand out, and change nothing.
///
/// A message a line: QUEUE/ID, a tab, and the message. Exits with 1 when there is nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct PeekArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// Most messages to show, 1 to 10000
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = qty(), allow_negative_numbers = true)]
    pub(crate) qty: u16,
}

/// Settle messages as done.
///
/// Exits with 1 when a lease is no longer held: its message was delivered again, settled or cancelled, and is not
/// touched. The others are settled all the same.
#[derive(Debug, clap::Args)]
#[command(override_usage = "vtq ack [OPTIONS] <QUEUE> <ID:READ_CT>...")]
pub(crate) struct AckArgs {
    #[command(flatten)]
    pub(crate) leases: LeaseArgs,
}

/// The leases that a settling command is about.
#[derive(Debug, clap::Args)]
pub(crate) struct LeaseArgs {
    /// Leases as `vtq read` prints them, after the name of their queue; or each as QUEUE/ID:READ_CT
    #[arg(required = true, value_name = "QUEUE ID:READ_CT")]
    pub(crate) words: Vec<String>,
}

/// Settle messages as failed: to be retried after the backoff, or dead.
///
/// Dead, when no run is left: the message goes to the dead letters.
///
/// Exits with 1 when a lease is no longer held. The same call again gets the same answer and changes nothing.
#[derive(Debug, clap::Args)]
#[command(override_usage = "vtq fail [OPTIONS] <QUEUE> <ID:READ_CT>...")]
pub(crate) struct FailArgs {
    #[command(flatten)]
    pub(crate) leases: LeaseArgs,
    /// What went wrong; kept with the attempt and the dead letter
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
    /// Kind of the error, to sort and redrive by; cut at 200 characters
    #[arg(long, value_name = "TEXT")]
    pub(crate) class: Option<String>,
    /// Wait this long for the next run, instead of the backoff
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) retry_after: Option<Duration>,
    /// Allow no further run: to the dead letters
    #[arg(long, conflicts_with = "retry_after")]
    pub(crate) permanent: bool,
}

/// Lengthen leases, counted from now: a heartbeat.
///
/// Exits with 1 when a lease is no longer held.
#[derive(Debug, clap::Args)]
#[command(override_usage = "vtq extend [OPTIONS] <QUEUE> <ID:READ_CT>...")]
pub(crate) struct ExtendArgs {
    #[command(flatten)]
    pub(crate) leases: LeaseArgs,
    /// How long to hide the messages from now on, 1ms to 12h [default: the queue's, 30s unless set]
    #[arg(long, alias = "visibility-timeout", value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) vt: Option<Duration>,
}

/// Give messages back for later. It does not count as an attempt.
///
/// Exits with 1 when a lease is no longer held.
#[derive(Debug, clap::Args)]
#[command(override_usage = "vtq defer [OPTIONS] --delay <LENGTH> <QUEUE> <ID:READ_CT>...")]
pub(crate) struct DeferArgs {
    #[command(flatten)]
    pub(crate) leases: LeaseArgs,
    /// How long until they are due again
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) delay: Duration,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Give messages back at once. It does not count as an attempt.
///
/// Exits with 1 when a lease is no longer held.
#[derive(Debug, clap::Args)]
#[command(override_usage = "vtq release [OPTIONS] <QUEUE> <ID:READ_CT>...")]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) leases: LeaseArgs,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// The messages that a command is about.
#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// Messages, each as QUEUE/ID; or the name of a queue and ids
    #[arg(required = true, value_name = "QUEUE/ID")]
    pub(crate) words: Vec<String>,
}

/// Remove live messages, whoever holds them.
///
/// A holder learns of it at its next heartbeat. Exits with 1 when a message is not there: done, dead or never sent.
/// Dead letters are removed with `vtq dlq purge`.
#[derive(Debug, clap::Args)]
#[command(visible_alias = "discard")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) names: NameArgs,
}

/// Make delayed or retrying messages due now.
///
/// The same message with its attempts as they are; no copy. Exits with 1 when a message is neither delayed nor
/// retrying. Dead letters are sent back with `vtq dlq retry`.
#[derive(Debug, clap::Args)]
#[command(visible_alias = "run-now")]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) names: NameArgs,
}

/// Tell why a message does not run now, and what happened to it so far.
///
/// Where it is and in which state, when something changes by itself, who holds it, which layer (message, queue or
/// default) each number that decides comes from, and every delivery that did not succeed. Exits with 1 when there is no
/// trace of the message.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The message, as QUEUE/ID or QUEUE ID
    #[arg(required = true, num_args = 1..=2, value_name = "QUEUE/ID")]
    pub(crate) words: Vec<String>,
}

/// List the deliveries of a message that did not succeed.
///
/// They stay with a message through its retries, its death and its redrives, for as long as the queue's
/// attempts_retention. Exits with 1 when there are none.
#[derive(Debug, clap::Args)]
pub(crate) struct AttemptsArgs {
    /// The message, as QUEUE/ID or QUEUE ID
    #[arg(required = true, num_args = 1..=2, value_name = "QUEUE/ID")]
    pub(crate) words: Vec<String>,
}

//! `vtq dlq`: the dead letters.

use std::time::Duration;

use clap::Subcommand;
use vtq::QueueName;

use super::length::length;
use super::message::NameArgs;

/// Look at dead letters, send them back, purge them.
#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    List(ListArgs),
    Show(ShowArgs),
    Retry(RetryArgs),
    RetryAll(RetryAllArgs),
    Purge(PurgeArgs),
}

/// List dead letters, the last one to die first.
///
/// Exits with 1 when there are none.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Name of the queue [default: all queues]
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: Option<QueueName>,
    /// Most dead letters to list, 1 to 10000
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000), allow_negative_numbers = true)]
    pub(crate) limit: u16,
    /// List those that died before this one: the cursor that the page before ended with
    #[arg(long, value_name = "CURSOR")]
    pub(crate) before: Option<String>,
}

/// Show one dead letter: why it died, and its attempts.
///
/// The message and its headers may hold secrets: they are shown with --payload only. Exits with 1 when there is no
/// such dead letter.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The dead letter, as QUEUE/ID or QUEUE ID
    #[arg(required = true, num_args = 1..=2, value_name = "QUEUE/ID")]
    pub(crate) words: Vec<String>,
    /// Show the message and its headers too
    #[arg(long)]
    pub(crate) payload: bool,
}

/// Send dead letters back to their queue: same id, new budget of attempts.
///
/// Exits with 1 when one of them is not there. The others are sent back all the same.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) names: NameArgs,
    /// Hold them back for this long first
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) delay: Option<Duration>,
}

/// Send all dead letters back, or all that fit a filter.
///
/// All that died before the command was started, in batches of 1000 that are a transaction each, the oldest first.
/// Interrupted, it leaves what it has done; started again, it goes on. Exits with 1 when there was nothing to send
/// back.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryAllArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE", required_unless_present = "all_queues", conflicts_with = "all_queues")]
    pub(crate) queue: Option<QueueName>,
    /// Those of every queue
    #[arg(long)]
    pub(crate) all_queues: bool,
    /// Only those that died for this reason
    ///
    /// attempts_exhausted, worker_died, permanent_failure, expired, undecodable or by_operator.
    #[arg(long, value_name = "REASON", value_parser = REASONS)]
    pub(crate) reason: Option<String>,
    /// Only those whose last error has this class
    #[arg(long, value_name = "TEXT")]
    pub(crate) class: Option<String>,
    /// Say how many it would be, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The reasons of a dead letter's block.
const REASONS: [&str; 7] = [
    "attempts_exhausted",
    "worker_died",
    "never_started",
    "permanent_failure",
    "expired",
    "undecodable",
    "by_operator",
];

/// Remove dead letters for good.
///
/// Single ones by name, those of a queue that died long ago, or all of a queue. Exits with 1 when one that is named
/// is not there, or when there was nothing to purge.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
vtq dlq purge [OPTIONS] <QUEUE/ID>...
       vtq dlq purge [OPTIONS] <QUEUE> --older-than <LENGTH>
       vtq dlq purge [OPTIONS] <QUEUE> --all")]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    pub(crate) names: NameArgs,
    /// All dead letters of the queue; asks first, or needs --yes
    #[arg(long, conflicts_with = "older_than")]
    pub(crate) all: bool,
    /// Those of the queue that died this long ago or longer
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) older_than: Option<Duration>,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Say how many it would be, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

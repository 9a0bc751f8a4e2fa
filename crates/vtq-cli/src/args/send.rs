//! `vtq send`.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use vtq::QueueName;

use super::length::{instant, length};

/// Send messages: one, or one a line from a file or standard input.
///
/// A message is any JSON. With MESSAGE, its id is printed; otherwise the number of messages sent. Blank lines are
/// skipped.
///
/// --file: every line is checked first, and all are sent in one transaction: every line of the file or none.
///
/// Standard input: lines are sent as they come, in batches that are each sent whole or not at all, when --batch is
/// full or the input pauses. A bad line ends it; the error says how many were sent and how to go on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  vtq send orders '{\"order\": 7}'
  vtq send orders --delay 5m --header traceparent=\"$TRACEPARENT\" '{\"order\": 7}'
  vtq send orders --file orders.ndjson
  tail -F orders.log | vtq send orders")]
pub(crate) struct SendArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The message, as JSON; `-`: one a line from standard input
    ///
    /// It shows in `ps` while the command runs: send secrets through a file or standard input.
    #[arg(value_name = "MESSAGE", conflicts_with = "file", allow_negative_numbers = true)]
    pub(crate) message: Option<String>,
    /// Send every line of this file, or none; `-`: standard input
    #[arg(long, short, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// Start with this line of the file or of standard input
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "message")]
    pub(crate) from_line: u64,
    /// Messages in a batch
    ///
    /// 1 to 100000. A batch of long messages is cut earlier, at 32 MiB.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: u32,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of the messages")]
pub(crate) struct OptionArgs {
    /// Header of every message; may be given again. The value is text
    #[arg(long, short = 'H', value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
    /// Hold the messages back for this long, at most 36500d [default: due at once]
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true, conflicts_with = "at")]
    pub(crate) delay: Option<Duration>,
    /// Hold the messages back until this instant, RFC 3339; one that is past means at once
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub(crate) at: Option<DateTime<Utc>>,
    /// Priority level, one that the queue has [default: 0, or the queue's last]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i16>,
    /// Runs allowed, the first included, 1 to 32767 [default: the queue's]
    #[arg(long, alias = "max-retries", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32767), allow_negative_numbers = true)]
    pub(crate) max_attempts: Option<u16>,
    /// Do not start a message later than this long after it is sent
    ///
    /// It goes to the dead letters with the reason `expired`. One that is running then is finished.
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true, conflicts_with = "expires_at")]
    pub(crate) expires_in: Option<Duration>,
    /// Do not start a message after this instant, RFC 3339
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub(crate) expires_at: Option<DateTime<Utc>>,
}

//! `vtq send`.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::ValueEnum;
use vtq::QueueName;

use super::length::{instant, length};

/// Send messages: one, or one a line from a file or standard input.
///
/// A message is any JSON. With MESSAGE, its id is printed, and with --unique-key after it what became of it: `sent`,
/// `superseded` (sent, and an older one that was waiting for a retry is in the archive), `skipped` or `replaced`.
/// Otherwise the number of messages sent is printed. Blank lines are skipped.
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
  vtq send mails '{\"user\": 7}' --unique-key digest/7 --on-conflict replace --delay 5m --max-wait 1h
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
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Keys of the messages")]
pub(crate) struct KeyArgs {
    /// Send only if no live message of the queue has this key; see --on-conflict
    #[arg(long, value_name = "KEY", conflicts_with = "file", requires = "message")]
    pub(crate) unique_key: Option<String>,
    /// When the unique key is free again [default: done; with --on-conflict replace and --delay: started]
    ///
    /// done: when the message is done, dead or cancelled. started: when it is first started; a newer message then goes
    /// before its retry, which is superseded.
    #[arg(long, value_name = "WHEN", requires = "unique_key")]
    pub(crate) unique_until: Option<UniqueUntil>,
    /// Keep the unique key taken this long after success as well, at most 36500d
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true, requires = "unique_key")]
    pub(crate) unique_for: Option<Duration>,
    /// What to do when the unique key is taken [default: skip]
    ///
    /// skip: nothing is sent. replace: the waiting message takes the new payload and headers, and with --delay is due
    /// that long from now. error: exit 2.
    #[arg(long, value_name = "HOW", requires = "unique_key")]
    pub(crate) on_conflict: Option<OnConflict>,
    /// How far later sends may put the message off, with --on-conflict replace and --delay
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true, requires_all = ["unique_key", "delay"])]
    pub(crate) max_wait: Option<Duration>,
    /// Group of the messages: they run one after the other, in order
    #[arg(long, value_name = "KEY", conflicts_with = "exclusive_key")]
    pub(crate) group_key: Option<String>,
    /// Key of which at most so many messages run at once, in no order
    #[arg(long, value_name = "KEY")]
    pub(crate) exclusive_key: Option<String>,
}

/// Values of --unique-until.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum UniqueUntil {
    Done,
    Started,
}

/// Values of --on-conflict.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnConflict {
    Skip,
    Replace,
    Error,
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
    /// Do not run a message again later than this long after it is sent
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true, conflicts_with = "retry_until")]
    pub(crate) retry_for: Option<Duration>,
    /// Do not run a message again after this instant, RFC 3339
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub(crate) retry_until: Option<DateTime<Utc>>,
}

//! `vtq queue`, `vtq pause`, `vtq resume`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Subcommand, ValueEnum};
use vtq::QueueName;

use super::length::{Limit, instant, length, limit};
use super::limits::{NumberOrNone, RateOrNone, number_or_none, rate};

/// Create, change, drop and list queues.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Create a queue, or repair one that has lost a table
    ///
    /// A queue that is there with the same options is left as it is. One with other options is an error: they are
    /// changed with `vtq queue set`.
    ///
    /// A name is 1 to 47 bytes of a-z, 0-9, `_` and `-`, begins with a letter or a digit, and does not end in _dlq,
    /// _archive or _attempts.
    Create(SetArgs),
    /// Change options of a queue, at once and for the messages in it too
    Set(SetArgs),
    /// Drop a queue with everything in it
    ///
    /// Live messages, dead letters, the archive and the attempts go with it, for good.
    Drop(DropArgs),
    /// List the queues and their main options
    List,
    /// Show all options of a queue as they are in force
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) name: QueueName,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct OptionArgs {
    /// Runs allowed for a message, the first included [default: 5]
    ///
    /// 1 to 32767. After the last one fails, the message goes to the dead letters.
    #[arg(long, visible_alias = "max-retries", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32767))]
    pub(crate) max_attempts: Option<u16>,
    /// Visibility timeout: how long a read hides a message [default: 30s]
    ///
    /// 1ms to 12h. Workers renew it while they run a message, so it is how long a message waits after its worker died.
    #[arg(long, alias = "visibility-timeout", value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) vt: Option<Duration>,
    /// How long one run may take, or none [default: 15m]
    #[arg(long, value_name = "LENGTH|none", value_parser = limit, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Limit>,
    /// What becomes of a message that is done [default: archive]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_ack: Option<OnAck>,
    /// Priority levels, the one served first in front [default: 0]
    ///
    /// 1 to 16 different whole numbers, such as 10,0. A send with another priority is refused.
    #[arg(long, value_name = "N,...", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) priorities: Option<Vec<i16>>,
    /// Messages of one exclusive key that run at once [default: 1]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) exclusive_limit: Option<u32>,
    /// What becomes of a group whose message died [default: continue]
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Limits")]
    pub(crate) group_on_dead: Option<GroupOnDead>,
    /// Messages of the queue that run at once over all workers, or none for no limit [default: none]
    #[arg(long, value_name = "N|none", value_parser = number_or_none, help_heading = "Limits")]
    pub(crate) max_in_flight: Option<NumberOrNone>,
    /// Messages handed out in a length of time, such as 100/1m, or none for no limit [default: none]
    #[arg(long, value_name = "N/LENGTH|none", value_parser = rate, help_heading = "Limits")]
    pub(crate) rate: Option<RateOrNone>,
    /// The same for each group or exclusive key [default: none]
    #[arg(long, value_name = "N/LENGTH|none", value_parser = rate, help_heading = "Limits")]
    pub(crate) key_rate: Option<RateOrNone>,
    /// How long a message may be ready before it goes ahead of the higher levels, or none [default: 1h]
    #[arg(long, value_name = "LENGTH|none", value_parser = limit, allow_negative_numbers = true)]
    pub(crate) aging: Option<Limit>,
    /// Write no WAL for live messages: faster, and emptied by a crash of the server
    ///
    /// Fixed when the queue is created.
    #[arg(long)]
    pub(crate) unlogged: bool,
    #[command(flatten)]
    pub(crate) backoff: BackoffArgs,
    /// How long messages that are done are kept, or none for ever [default: 7d]
    #[arg(long, value_name = "LENGTH|none", value_parser = limit, help_heading = "Retention")]
    pub(crate) archive_retention: Option<Limit>,
    /// How long records of failed runs are kept, or none for ever [default: 30d]
    #[arg(long, value_name = "LENGTH|none", value_parser = limit, help_heading = "Retention")]
    pub(crate) attempts_retention: Option<Limit>,
    /// How long dead letters are kept, or none for ever [default: none]
    #[arg(long, value_name = "LENGTH|none", value_parser = limit, help_heading = "Retention")]
    pub(crate) dlq_retention: Option<Limit>,
    /// Any option by its name in SQL, its value in JSON or as text
    ///
    /// Such as -o max_attempts=8. With `set`, -o NAME=null takes the default again.
    #[arg(short, long = "option", value_name = "NAME=VALUE")]
    pub(crate) option: Vec<String>,
}

#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Backoff")]
pub(crate) struct BackoffArgs {
    /// How the wait grows from one failure to the next [default: exponential]
    ///
    /// exponential: base, 2 base, 4 base and so on; linear: base, 2 base, 3 base; fixed: always base. A list of waits
    /// is given with --backoff.
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) backoff_kind: Option<BackoffKind>,
    /// Wait after the first failure [default: 5s]
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) backoff_base: Option<Duration>,
    /// Longest wait, jitter included [default: 5m]
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) backoff_max: Option<Duration>,
    /// Random part of the wait: a fraction either way, or none, equal, full [default: 0.15]
    ///
    /// equal: from half the wait to all of it; full: from nothing to all of it.
    #[arg(long, value_name = "JITTER")]
    pub(crate) jitter: Option<String>,
    /// What to do when the wait would end past a message's deadline [default: dead]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_deadline: Option<OnDeadline>,
    /// The whole backoff as JSON, lengths in seconds
    ///
    /// Such as '{"kind": "list", "delays": [1, 10, 60]}'.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["backoff_kind", "backoff_base", "backoff_max", "jitter", "on_deadline"])]
    pub(crate) backoff: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackoffKind {
    Exponential,
    Linear,
    Fixed,
}

/// What becomes of a group whose message died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupOnDead {
    /// The next message runs
    Continue,
    /// The group waits until the dead letter is redriven or purged
    Pause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDeadline {
    /// Move it to the dead letters at once, with its error
    Dead,
    /// Wait less, so that one last try fits
    Clamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnAck {
    /// Keep it in the queue's archive, by day
    Archive,
    /// Delete it
    Delete,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DropArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) name: QueueName,
    /// Drop it although there are messages in it, and do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) name: QueueName,
}

/// Make reads of a queue return nothing, in all workers.
///
/// Messages in flight go on, and messages can be sent. `vtq queues` shows the pause and its reason. Pausing a queue
/// that is paused replaces both the reason and the end.
#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) name: QueueName,
    /// Why, for whoever wonders
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// End the pause after this long [default: never]
    #[arg(long = "for", value_name = "LENGTH", value_parser = length, allow_negative_numbers = true, conflicts_with = "until")]
    pub(crate) length: Option<Duration>,
    /// End the pause at this instant, RFC 3339 [default: never]
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub(crate) until: Option<DateTime<Utc>>,
}

/// End the pause of a queue.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) name: QueueName,
}

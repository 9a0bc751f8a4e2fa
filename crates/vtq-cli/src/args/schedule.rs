//! `vtq schedule`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Subcommand, ValueEnum};
use vtq::QueueName;

use super::length::{instant, length};

/// Send messages by cron expressions.
///
/// Any worker sends what is due, whatever queues it serves; every tick is sent once.
#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    Add(Box<AddArgs>),
    /// List the schedules: the next tick of each, what it has sent, and why it cannot
    ///
    /// active: it sends; paused; failing: it cannot send, and is tried again; new: no worker has looked at it yet;
    /// ended: no tick will come. Exits with 1 when there are none.
    List(ListArgs),
    Pause(PauseArgs),
    /// End the pause of a schedule
    ///
    /// Ticks that fell into the pause are skipped or made up for, as the schedule says.
    Resume(NameArgs),
    /// Send a schedule's message now, besides its plan, and print its id
    Run(NameArgs),
    /// Remove a schedule
    ///
    /// Messages that it has sent stay. Exits with 1 when it is not there.
    Remove(NameArgs),
}

/// Add a schedule, or change the one of that name.
///
/// One that is there keeps its pause and its counts, and where neither --cron nor --timezone has changed, its next
/// tick: the command may run at every deployment.
///
/// Hours that an expression names, as in `30 2 * * *`, go by the clock on the wall: each time is one tick a day, also
/// when clocks are changed. With `*` in the hours, the time that passes counts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  vtq schedule add nightly --cron '30 2 * * *' --timezone Europe/Berlin --queue reports --message '{\"kind\": \"daily\"}'
  vtq schedule add poll --cron '*/10 * * * * *' --queue feeds --message '{}' --expires-in 10s
  vtq schedule add bills --cron '0 8 1 * *' --queue bills --message '{}' --missed all --cap 12")]
pub(crate) struct AddArgs {
    /// Name of the schedule, 1 to 100 bytes
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// When: minute, hour, day of the month, month, day of the week
    ///
    /// Six fields have seconds in front; @hourly, @daily, @weekly, @monthly and @yearly are known too. Days of the
    /// month and of the week that are both given are alternatives.
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) cron: String,
    /// Time zone of the expression, by its name in the IANA database
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) timezone: String,
    /// Name of the queue to send to
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The message, as JSON; `-`: from standard input
    ///
    /// It shows in `ps` while the command runs: give secrets on standard input.
    #[arg(long, value_name = "MESSAGE", allow_negative_numbers = true)]
    pub(crate) message: String,
    /// What becomes of ticks that nobody sent in time
    ///
    /// No worker ran, the schedule was paused, or its queue was missing.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "skip")]
    pub(crate) missed: MissedArg,
    /// With --missed all: the most that are made up for, the newest, 1 to 1000 [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) cap: Option<u16>,
    /// A tick that is sent this late does not count as missed [default: 1m]
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) grace: Option<Duration>,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MissedArg {
    /// Go on with the next tick
    Skip,
    /// Send one message for all of them
    Once,
    /// Send a message for each
    All,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of the messages")]
pub(crate) struct OptionArgs {
    /// Header of every message; may be given again. The value is text
    #[arg(long, short = 'H', value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
    /// Hold the messages back for this long, at most 36500d [default: due at once]
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) delay: Option<Duration>,
    /// Priority level, one that the queue has [default: 0, or the queue's last]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i16>,
    /// Runs allowed, the first included, 1 to 32767 [default: the queue's]
    #[arg(long, alias = "max-retries", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32767), allow_negative_numbers = true)]
    pub(crate) max_attempts: Option<u16>,
    /// Do not start a message later than this long after it is sent
    #[arg(long, value_name = "LENGTH", value_parser = length, allow_negative_numbers = true)]
    pub(crate) expires_in: Option<Duration>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// With --json: the messages and their headers too, which may hold secrets
    #[arg(long)]
    pub(crate) payload: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// Name of the schedule
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Keep a schedule from sending.
///
/// Pausing one that is paused replaces both the reason and the end.
#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    /// Name of the schedule
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
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

//! The command line: what can be given, and the help that says so. No type of it reaches the library.

pub(crate) mod bench;
pub(crate) mod dlq;
mod global;
mod help;
pub(crate) mod length;
mod limits;
pub(crate) mod lint;
pub(crate) mod message;
pub(crate) mod name;
pub(crate) mod queue;
pub(crate) mod schedule;
pub(crate) mod send;
mod usage;

pub(crate) use usage::Refusal;

use clap::{FromArgMatches, Parser, Subcommand};
pub(crate) use global::{Color, Global};

use crate::cmd;

/// A message queue inside PostgreSQL.
///
/// A message is a row. Reading it hides it for a visibility timeout; a worker that is done settles it, one that fails
/// has it back after a backoff, and one that dies does nothing: the timeout brings the message back. What fails too
/// often lies among the dead letters, with the reason why.
#[derive(Debug, Parser)]
#[command(name = "vtq", version, disable_help_subcommand = false)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Migrate(MigrateArgs),
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    Pause(queue::PauseArgs),
    Resume(queue::ResumeArgs),
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    Demo(cmd::demo::DemoArgs),
    Send(send::SendArgs),
    Start(cmd::start::StartArgs),
    Read(message::ReadArgs),
    Peek(message::PeekArgs),
    Ack(message::AckArgs),
    Fail(message::FailArgs),
    Extend(message::ExtendArgs),
    Defer(message::DeferArgs),
    Release(message::ReleaseArgs),
    Queues(QueuesArgs),
    Status(StatusArgs),
    Explain(message::ExplainArgs),
    Lint(lint::LintArgs),
    Backoff(lint::BackoffArgs),
    Attempts(message::AttemptsArgs),
    Cancel(message::CancelArgs),
    Retry(message::RetryArgs),
    #[command(subcommand)]
    Dlq(dlq::DlqCommand),
    Maintain(MaintainArgs),
    Bench(bench::BenchArgs),
    Completions(CompletionsArgs),
}

/// Run retention, archive partitions and compaction now
///
/// Workers do this now and then for the queues that they serve; by hand it is for queues that no worker serves, or
/// before a backup. One session at a time maintains a queue.
#[derive(Debug, clap::Args)]
pub(crate) struct MaintainArgs {
    /// The queues [default: all]
    #[arg(value_name = "QUEUE")]
    pub(crate) queues: Vec<vtq::QueueName>,
}

/// Install vtq into the database, or bring it up to date.
///
/// Creates the schema `vtq` with its tables and functions; needs the right CREATE on the database and no extension.
/// Running it again changes nothing, and any number may run it at once.
#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArgs {
    /// Say whether there is anything to do, and do nothing
    #[arg(long, conflicts_with = "sql")]
    pub(crate) dry_run: bool,
    /// Print the SQL that installs vtq into an empty database, and do nothing
    ///
    /// To read it, or to have it run by whoever may. Needs no database.
    #[arg(long)]
    pub(crate) sql: bool,
}

/// Show every queue: what is in it, by state, and for how long.
///
/// Ready: a read would hand it out. In flight: somebody holds it. Delayed: not due yet. Retrying: waits for its next
/// run after a failure. Dead: among the dead letters. Exhausted and expired messages, which wait to be moved there,
/// have columns of their own when there are any. The oldest ready message says how far behind the workers are.
#[derive(Debug, clap::Args)]
pub(crate) struct QueuesArgs {
    /// Count every row, at the price of a scan
    ///
    /// Default: counts past 5000 are estimates and marked with `~`, so that the command stays cheap at any size.
    #[arg(long)]
    pub(crate) exact: bool,
}

/// Show the workers: what they serve, and whether they still ask for messages.
///
/// The heartbeat says that the process lives, the last claim that it still fetches: two different things. A worker
/// that stops cleanly is gone from the list; one that was killed stays for a day.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {}

/// Print a completion script for a shell.
///
/// For bash: `vtq completions bash > ~/.local/share/bash-completion/completions/vtq`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Reads the command line; what is wrong with it comes back as one sentence, or as a help text to print.
pub(crate) fn parse() -> Result<Args, Refusal> {
    let words: Vec<_> = std::env::args_os().collect();
    let refuse = |error: clap::Error| Refusal::of(&error, &words);
    let matches = command().try_get_matches_from(&words).map_err(refuse)?;
    Args::from_arg_matches(&matches).map_err(refuse)
}

/// The whole command, with its help.
pub(crate) fn command() -> clap::Command {
    help::arrange(<Args as clap::CommandFactory>::command())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}

//! The commands, a file each.

mod attempts;
mod backoff;
mod bench;
mod cancel;
mod completions;
pub(crate) mod demo;
mod dlq;
mod explain;
mod lint;
mod maintain;
mod migrate;
mod pause;
mod queue;
mod queues;
mod read;
mod schedule;
mod send;
mod settle;
pub(crate) mod start;
mod status;

use crate::args::dlq::DlqCommand;
use crate::args::{Command, Global};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Runs a command to its end, or until Ctrl-C.
pub(crate) async fn run(global: &Global, command: Command) -> anyhow::Result<Exit> {
    let interrupt = match command {
        // These two have ways of their own to stop.
        Command::Start(_) | Command::Demo(_) => Interrupt::never(),
        _ => Interrupt::listen(),
    };
    let patience = if has_work_to_finish(&command) { 2 } else { 1 };
    tokio::select! {
        answer = run_verb(global, command, &interrupt) => answer,
        () = interrupt.requested(patience) => Ok(Exit::Interrupted),
    }
}

/// Tells whether a command stops by itself after the first Ctrl-C, and says how far it has come.
fn has_work_to_finish(command: &Command) -> bool {
    match command {
        Command::Send(_) | Command::Bench(_) => true,
        Command::Dlq(DlqCommand::RetryAll(args)) => !args.dry_run,
        Command::Dlq(DlqCommand::Purge(args)) => !args.dry_run,
        _ => false,
    }
}

async fn run_verb(global: &Global, command: Command, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let output = Output::of(global);
    match command {
        Command::Migrate(args) => migrate::run(global, output, &args).await,
        Command::Queue(command) => queue::run(global, output, command).await,
        Command::Pause(args) => pause::pause(global, output, args).await,
        Command::Resume(args) => pause::resume(global, output, args).await,
        Command::Schedule(command) => schedule::run(global, output, command).await,
        Command::Send(args) => send::run(global, output, args, interrupt).await,
        Command::Read(args) => read::read(global, output, args).await,
        Command::Peek(args) => read::peek(global, output, args).await,
        Command::Ack(args) => settle::ack(global, output, args).await,
        Command::Fail(args) => settle::fail(global, output, args).await,
        Command::Extend(args) => settle::extend(global, output, args).await,
        Command::Defer(args) => settle::defer(global, output, args).await,
        Command::Release(args) => settle::release(global, output, args).await,
        Command::Queues(args) => queues::run(global, output, &args).await,
        Command::Status(_) => status::run(global, output).await,
        Command::Explain(args) => explain::run(global, output, &args).await,
        Command::Lint(args) => lint::run(global, output, &args).await,
        Command::Backoff(args) => backoff::run(global, output, &args).await,
        Command::Attempts(args) => attempts::run(global, output, &args).await,
        Command::Cancel(args) => cancel::cancel(global, output, &args).await,
        Command::Retry(args) => cancel::retry(global, output, &args).await,
        Command::Dlq(command) => dlq::run(global, output, command, interrupt).await,
        Command::Maintain(args) => maintain::run(global, output, &args).await,
        Command::Bench(args) => bench::run(global, output, args, interrupt).await,
        Command::Completions(args) => completions::run(&args),
        Command::Start(args) => start::run(global, args).await,
        Command::Demo(args) => demo::run(global, args).await,
    }
}

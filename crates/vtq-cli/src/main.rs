//! The `vtq` command: parses, runs, prints one error line, exits.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod cmd;
mod exit;
mod interrupt;
mod log;
mod output;
mod report;

use std::panic;
use std::process::ExitCode;

use crate::args::{Args, Refusal};
use crate::exit::Exit;
use crate::output::{Closed, complain, print};

fn main() -> ExitCode {
    panic::set_hook(Box::new(|panic| {
        // Not the text of the panic: it may quote a message.
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        complain(&format!("internal error{}: this is a bug in vtq", place.unwrap_or_default()));
    }));
    panic::catch_unwind(start).unwrap_or(Exit::Failed).into()
}

fn start() -> Exit {
    let args = match args::parse() {
        Ok(args) => args,
        Err(refusal) => return answer(&refusal),
    };
    log::start(&args.global);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("cannot start: {error}"));
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(run(args));
    // A thread that still waits for standard input must not keep the process.
    runtime.shutdown_background();
    exit
}

fn answer(refusal: &Refusal) -> Exit {
    match refusal {
        Refusal::Text(text) => {
            // Help that nobody reads to its end has been read.
            let _ = print(text);
            Exit::Done
        }
        Refusal::Help(text) => {
            eprint_all(text);
            Exit::Failed
        }
        Refusal::Wrong(line) => {
            complain(line);
            Exit::Failed
        }
    }
}

fn eprint_all(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

async fn run(args: Args) -> Exit {
    let Args { global, command } = args;
    match cmd::run(&global, command).await {
        Ok(exit) => exit,
        Err(error) if error.is::<Closed>() => Exit::Done,
        Err(error) => {
            complain(&report::sentence(&global, &error).await);
            Exit::Failed
        }
    }
}

//! The `vtq` command: parses, runs, prints one error line, exits.

mod args;
mod cmd;
mod exit;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser;
use exit::Exit;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let answer = match args.command {
        Command::Start(start) => cmd::start::run(&args.global, start).await,
        Command::Demo(demo) => cmd::demo::run(&args.global, demo).await,
    };
    answer.unwrap_or_else(|error| {
        eprintln!("vtq: {error:#}");
        Exit::Failed
    }).into()
}

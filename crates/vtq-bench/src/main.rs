//! The same workloads on vtq and on its peers, in one run on one throwaway cluster.
//!
//! ```console
//! $ cargo run --release -p vtq-bench -- throughput --runs 5 --seconds 10 --out docs/benchmarks.md
//! $ cargo run --release -p vtq-bench -- --quick       # everything, for a second each
//! ```
//!
//! A run that errors says so and exits 2; nothing is printed that was not measured.

mod args;
mod backlog;
mod body;
mod child;
mod client_loop;
mod cluster;
mod cpu;
mod figure;
mod machine;
mod meter;
mod notify;
mod peer;
mod pump;
mod stage;
mod table;
mod tally;
mod timer;
mod wal;
mod workload;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::args::{Args, Command};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.command {
        Some(Command::Child(child)) => child::run(child).await,
        None => run(&args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "vtq-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run(args: &Args) -> Result<()> {
    let bench = cluster::Bench::start().await?;
    let page = workload::run_all(&bench, args).await?;
    match &args.out {
        Some(path) => std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display())),
        None => std::io::stdout().write_all(page.as_bytes()).context("cannot write to standard output"),
    }
}

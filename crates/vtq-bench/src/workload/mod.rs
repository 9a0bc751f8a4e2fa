//! The workloads: each measures some peers once, and says what to compare.

mod concurrency;
mod groups;
mod long;
mod memory;
mod metrics;
mod pickup;
mod processes;
mod read;
mod steady;
mod throughput;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::args::Args;
use crate::cluster::Bench;
use crate::figure::{Figures, Metric, Section};
use crate::{machine, table};

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Send, handle and ack, flat out, in batches of 100
    Throughput,
    /// One worker process, handlers of 1 ms, 4 to 512 slots
    Concurrency,
    /// Server CPU at a steady 800 messages/s
    Steady,
    /// 1, 2, 4 and 8 worker processes on one queue
    Processes,
    /// A long run with a transaction held open, and without
    Long,
    /// A read of one message behind a million that are not due
    Read,
    /// From commit to handler, idle and at 10 to 10,000 messages/s
    Pickup,
    /// Many small groups, and a huge one beside them
    Groups,
    /// `metrics_all` of a full queue
    Metrics,
    /// Memory of a worker process while a million messages wait
    Memory,
}

impl Workload {
    fn section(self, args: &Args) -> Section {
        match self {
            Self::Throughput => throughput::section(args),
            Self::Concurrency => concurrency::section(args),
            Self::Steady => steady::section(args),
            Self::Processes => processes::section(args),
            Self::Long => long::section(args),
            Self::Read => read::section(args),
            Self::Pickup => pickup::section(args),
            Self::Groups => groups::section(args),
            Self::Metrics => metrics::section(args),
            Self::Memory => memory::section(args),
        }
    }

    async fn measure(self, bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
        match self {
            Self::Throughput => throughput::measure(bench, args, figures).await,
            Self::Concurrency => concurrency::measure(bench, args, figures).await,
            Self::Steady => steady::measure(bench, args, figures).await,
            Self::Processes => processes::measure(bench, args, figures).await,
            Self::Long => long::measure(bench, args, figures).await,
            Self::Read => read::measure(bench, args, figures).await,
            Self::Pickup => pickup::measure(bench, args, figures).await,
            Self::Groups => groups::measure(bench, args, figures).await,
            Self::Metrics => metrics::measure(bench, args, figures).await,
            Self::Memory => memory::measure(bench, args, figures).await,
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The median of these times, and what all but one in a hundred of them stay under. There is at least one.
fn percentiles(mut times: Vec<Duration>) -> [(Metric, f64); 2] {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0;
    [(Metric::P50, at(0.5)), (Metric::P99, at(0.99))]
}

/// Runs what was asked for, and returns the page.
pub(crate) async fn run_all(bench: &Bench, args: &Args) -> Result<String> {
    let all = Workload::value_variants();
    let chosen: Vec<Workload> =
        all.iter().copied().filter(|one| args.workloads.is_empty() || args.workloads.contains(one)).collect();
    let mut sections: Vec<Section> = chosen.iter().map(|workload| workload.section(args)).collect();
    for run in 1..=args.runs() {
        for (workload, section) in chosen.iter().zip(&mut sections) {
            let mut figures = Figures::new(run);
            workload
                .measure(bench, args, &mut figures)
                .await
                .with_context(|| format!("workload {}, run {run}", workload.name()))?;
            section.runs.push(figures.into_vec());
        }
    }
    let head = head(bench, args).await?;
    Ok(sections.iter().fold(head, |page, section| page + &table::section(section)))
}

async fn head(bench: &Bench, args: &Args) -> Result<String> {
    let machine = machine::describe(&bench.admin).await?;
    // What was given, but for where the page goes.
    let mut given = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.split_once('=') {
            Some(("--out", _)) => {}
            _ if argument == "--out" => drop(arguments.next()),
            _ => given.push(argument),
        }
    }
    let command = format!("cargo run --release -p vtq-bench -- {}", given.join(" "));
    Ok(format!(
        "# Benchmarks\n\nMade by `{}`: the median of {} runs, and in brackets the least and the most. A ratio is of \
         two measurements of the same run; the peers take turns.\n\n{machine}\n\n",
        command.trim_end().trim_end_matches(" --"),
        args.runs(),
    ))
}

//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::child::ChildArgs;
use crate::peer::Peer;
use crate::workload::Workload;

/// Runs workloads on vtq and on its peers, on a PostgreSQL of its own, and writes a page of ratios.
#[derive(Debug, Parser)]
#[command(name = "vtq-bench", args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// What to measure; without any, everything
    #[arg(value_enum)]
    pub(crate) workloads: Vec<Workload>,
    /// How often each is measured; the peers take turns within a run
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// How long each measurement lasts
    #[arg(long, default_value_t = 5.0, value_parser = seconds, value_name = "SECONDS")]
    pub(crate) seconds: f64,
    /// Runs once, for about a second each, with small backlogs: shows that everything still works
    #[arg(long, conflicts_with_all = ["runs", "seconds"])]
    pub(crate) quick: bool,
    /// Measures only these; default: all that a workload knows
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) peers: Vec<Peer>,
    /// Writes the page to this file; default: standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// How many pollers the client loop has under throughput
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub(crate) pollers: u16,
    /// How many messages a second the long run sends
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: u32,
    /// How long each long run lasts; default: four times --seconds
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    pub(crate) long_seconds: Option<f64>,
    /// How many messages lie in the queue where a workload has a backlog; default: a million
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) backlog: Option<u32>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What the benchmark starts itself as.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Consumes until standard input ends; the benchmark starts it
    #[command(hide = true)]
    Child(ChildArgs),
}

impl Args {
    /// How often each workload is measured.
    pub(crate) fn runs(&self) -> u32 {
        if self.quick { 1 } else { self.runs }
    }

    /// How long each measurement lasts.
    pub(crate) fn span(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 1.0 } else { self.seconds })
    }

    /// How long a long run lasts.
    pub(crate) fn long_span(&self) -> Duration {
        if self.quick {
            return self.span();
        }
        self.long_seconds.map_or(self.span() * 4, Duration::from_secs_f64)
    }

    /// How many messages make a backlog.
    pub(crate) fn backlog(&self) -> u32 {
        self.backlog.unwrap_or(if self.quick { 20_000 } else { 1_000_000 })
    }

    /// A series of cases; a quick run takes its ends.
    pub(crate) fn series<T: Copy>(&self, all: &[T]) -> Vec<T> {
        match all {
            [first, .., last] if self.quick => vec![*first, *last],
            _ => all.to_vec(),
        }
    }

    /// Whether this peer was asked for.
    pub(crate) fn wants(&self, peer: Peer) -> bool {
        peer.is_built() && (self.peers.is_empty() || self.peers.contains(&peer))
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number of seconds"))?;
    if (0.1..=86_400.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("{text} is not allowed: it must be from 0.1 to 86400 seconds"))
    }
}

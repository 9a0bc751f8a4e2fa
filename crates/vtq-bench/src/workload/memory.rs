//! The memory of a worker process while many messages wait.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::args::Args;
use crate::backlog::Backlog;
use crate::child::Child;
use crate::cluster::Bench;
use crate::figure::{Figures, Metric, Ratio, Section};
use crate::peer::Peer;
use crate::stage::{Shape, Stage};

const SHAPE: Shape = Shape { pollers: 1, batch: 10, concurrency: 10, is_patient: false };
/// Slow enough that the messages keep waiting.
const HANDLER: Duration = Duration::from_millis(100);

const CASES: [Backlog; 2] = [Backlog::Nothing, Backlog::Ready];

pub(super) fn section(args: &Args) -> Section {
    Section {
        title: "Memory of a worker process",
        about: format!(
            "The resident set of a process that runs vtq's worker with {} slots and handlers of 100 ms, with nothing \
             and with {} messages waiting. The program holds the peers' code as well.",
            SHAPE.concurrency,
            args.backlog()
        ),
        ratios: vec![Ratio::new(
            Metric::Memory,
            (Backlog::Ready.name(), Peer::VtqWorker),
            (Backlog::Nothing.name(), Peer::VtqWorker),
        )],
        ..Section::default()
    }
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    if !args.wants(Peer::VtqWorker) {
        return Ok(());
    }
    for backlog in CASES {
        let url = backlog.database(bench, Peer::VtqWorker, args.backlog()).await?;
        let mut stage = Stage::at(bench, Peer::VtqWorker, url);
        let child = Child::start(&mut stage, SHAPE, HANDLER)?;
        stage.pump.work(args.span().max(Duration::from_secs(2))).await?;
        let memory = child.memory_mb()?;
        let has_run = stage.tally.handled() > 0;
        ensure!(has_run || backlog == Backlog::Nothing, "the worker has handled nothing");
        child.end().await?;
        stage.end().await?;
        figures.add(backlog.name(), Peer::VtqWorker, vec![(Metric::Memory, memory)]);
    }
    Ok(())
}

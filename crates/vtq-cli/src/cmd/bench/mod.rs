//! `vtq bench`: sends, handles and measures, against the user's own database, in a queue of its own.

mod consumer;
mod cpu;
mod listener;
mod live;
mod payload;
mod plot;
mod producer;
mod queue;
mod report;
mod run;
mod sampler;
mod series;
mod snapshot;
mod table;
mod tally;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use vtq::QueueName;

use self::queue::{Fill, Place};
use self::report::Report;
use self::run::Run;
use crate::args::Global;
use crate::args::bench::BenchArgs;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Counting what is left of a large backlog takes its time.
const LONGEST: Duration = Duration::from_secs(600);

pub(super) async fn run(
    global: &Global,
    output: Output,
    args: BenchArgs,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    if let Err(why) = args.check() {
        bail!(why);
    }
    if let Some(path) = &args.plot {
        // Better known now than after the run.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            bail!("--plot {}: there is no such folder", path.display());
        }
    }
    let mark = mark();
    let name = match &args.queue {
        Some(name) => name.clone(),
        None => QueueName::new(&format!("bench-{mark}"))?,
    };
    let vtq = global.options()?.application_name("vtq bench").statement_limit(LONGEST).connect().await?;
    let place = Place::make(&vtq, &name, args.on_ack).await?;
    let measured = measure(global, output, &args, interrupt, &place, &mark).await;
    // Whatever has happened, the queue goes.
    let removed = if args.keep { Ok(()) } else { place.remove().await };
    if measured.is_err() && removed.is_err() {
        return measured.map(|_| Exit::Failed).context(format!("queue `{name}` is left behind"));
    }
    if let Some(report) = measured? {
        print(&report, output)?;
        if let Some(path) = &args.plot {
            plot::write(path, &report)?;
        }
    } else {
        output.remark("interrupted before the clock has started: nothing was measured");
    }
    removed?;
    if args.keep {
        output.remark(&format!("queue `{name}` stays; drop it with: vtq queue drop {name} --yes"));
    }
    Ok(if interrupt.is_requested() { Exit::Interrupted } else { Exit::Done })
}

/// Fills the queue and runs the run; `None`: interrupted before it began.
async fn measure(
    global: &Global,
    output: Output,
    args: &BenchArgs,
    interrupt: &Interrupt,
    place: &Place,
    mark: &str,
) -> anyhow::Result<Option<Report>> {
    let writer = payload::Writer::new(mark, args.payload_size);
    for fill in [Fill::Delayed(args.delayed), Fill::Backlog(args.backlog)] {
        place.fill(writer.clone(), fill, output, interrupt).await?;
    }
    if interrupt.is_requested() {
        return Ok(None);
    }
    let (run, sampler) = Run::prepare(global, args, &place.queue, mark).await?;
    run.measure(sampler, args, &writer, output, interrupt).await.map(Some)
}

fn print(report: &Report, output: Output) -> anyhow::Result<()> {
    if output.is_json() {
        output.json(report)?;
    } else {
        table::print(report, output)?;
    }
    for remark in report.remarks() {
        output.remark(&remark);
    }
    Ok(())
}

/// What tells this run from all others: when it began and which process it is.
fn mark() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{}", since.as_millis(), std::process::id())
}

//! `vtq status`: the workers.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use vtq::WorkerInfo;

use crate::args::Global;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, Tone, ago, instant, millis};

/// Longer than the heartbeats and the naps of a healthy worker, idle or busy.
const SUSPICIOUS: Duration = Duration::from_secs(90);

/// A worker, in JSON.
#[derive(Serialize)]
struct Document<'a> {
    worker_id: &'a str,
    host: &'a str,
    pid: i32,
    version: &'a str,
    queues: &'a [String],
    started_at: DateTime<Utc>,
    heartbeat_at: DateTime<Utc>,
    heartbeat_age_ms: u64,
    last_claim_at: Option<DateTime<Utc>>,
    last_claim_age_ms: Option<u64>,
    in_flight: i32,
    wake_up: Option<&'a str>,
}

pub(super) async fn run(global: &Global, output: Output) -> anyhow::Result<Exit> {
    let workers = global.connect().await?.workers().await?;
    if output.is_json() {
        output.json(&workers.iter().map(document).collect::<Vec<_>>())?;
    } else if workers.is_empty() {
        output.remark("no worker is running: start one with: vtq start --queues QUEUE --exec COMMAND");
    } else {
        output.table(table(&workers))?;
    }
    Ok(if workers.is_empty() { Exit::Nothing } else { Exit::Done })
}

fn table(workers: &[WorkerInfo]) -> Table {
    let heads = [
        "worker",
        "host",
        "pid",
        "version",
        "queues",
        "in flight",
        "heartbeat",
        "last claim",
        "wake-up",
        "started",
    ];
    let mut table = Table::new(heads);
    for worker in workers {
        table.row([
            Cell::text(&worker.id),
            Cell::text(&worker.host),
            Cell::number(worker.pid),
            Cell::text(&worker.version),
            Cell::text(worker.queues.join(",")),
            Cell::number(worker.in_flight),
            age(Some(worker.heartbeat_age)),
            age(worker.last_claim_age),
            wake_up(worker.wake_up.as_deref()),
            Cell::text(instant(worker.started_at)),
        ]);
    }
    table
}

fn age(age: Option<Duration>) -> Cell {
    match age {
        None => Cell::text("never"),
        Some(age) => Cell::text(ago(age)).tone(if age > SUSPICIOUS { Tone::Bad } else { Tone::Plain }),
    }
}

/// A deaf worker still works, and learns late of what comes.
fn wake_up(wake_up: Option<&str>) -> Cell {
    let tone = if wake_up == Some("deaf") { Tone::Bad } else { Tone::Plain };
    Cell::text(wake_up.unwrap_or("-")).tone(tone)
}

fn document(worker: &WorkerInfo) -> Document<'_> {
    Document {
        worker_id: &worker.id,
        host: &worker.host,
        pid: worker.pid,
        version: &worker.version,
        queues: &worker.queues,
        started_at: worker.started_at,
        heartbeat_at: worker.heartbeat_at,
        heartbeat_age_ms: millis(worker.heartbeat_age),
        last_claim_at: worker.last_claim_at,
        last_claim_age_ms: worker.last_claim_age.map(millis),
        in_flight: worker.in_flight,
        wake_up: worker.wake_up.as_deref(),
    }
}

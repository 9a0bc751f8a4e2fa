//! `vtq backoff`: what a backoff does to many messages that fail together.

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Map, Value};
use vtq::{SimulatedFailure, Simulation, Vtq};

use crate::args::Global;
use crate::args::lint::BackoffArgs;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, millis};

#[derive(Serialize)]
struct Document<'a> {
    policy: &'a Map<String, Value>,
    runs: u32,
    messages: u32,
    failures: Vec<DocumentFailure>,
}

/// What follows one failure, in JSON.
#[derive(Serialize)]
struct DocumentFailure {
    failure: u16,
    wait_least_ms: u64,
    wait_p1_ms: u64,
    wait_p50_ms: u64,
    wait_p99_ms: u64,
    wait_most_ms: u64,
    since_p1_ms: u64,
    since_p50_ms: u64,
    since_p99_ms: u64,
    peak_1s: u64,
    peak_100ms: u64,
}

pub(super) async fn run(global: &Global, output: Output, args: &BackoffArgs) -> anyhow::Result<Exit> {
    let vtq = global.connect_patiently().await?;
    let policy = policy(&vtq, args).await?;
    let messages = args.messages.unwrap_or(args.runs);
    let simulation = Simulation::new().failures(args.failures).runs(args.runs).messages(messages);
    let failures = vtq.simulate_backoff(&policy, simulation).await?;
    if output.is_json() {
        let failures = failures.iter().map(document).collect();
        output.json(&Document { policy: &policy, runs: args.runs, messages, failures })?;
    } else {
        output.table(table(&failures))?;
        if let Some(most) = failures.iter().max_by_key(|failure| failure.peak_1s) {
            output.line(&format!(
                "\nAn outage that {messages} messages share brings back at the most {} a second, after failure {}.",
                most.peak_1s, most.failure
            ))?;
        }
    }
    Ok(Exit::Done)
}

/// The policy that was given, or the queue's.
async fn policy(vtq: &Vtq, args: &BackoffArgs) -> anyhow::Result<Map<String, Value>> {
    match (&args.policy, &args.name) {
        (Some(text), _) => serde_json::from_str(text).context("--policy is not a JSON object"),
        (None, name) => {
            let name = name.as_ref().context("name a queue, or give a backoff with --policy")?;
            match vtq.queue(name)?.options().await?.remove("backoff") {
                Some(Value::Object(policy)) => Ok(policy),
                _ => Ok(Map::new()),
            }
        }
    }
}

fn table(failures: &[SimulatedFailure]) -> Table {
    let mut table = Table::new([
        "failure",
        "wait least",
        "p1",
        "p50",
        "p99",
        "most",
        "since p1",
        "p50",
        "p99",
        "peak 1 s",
        "peak 100 ms",
    ]);
    for failure in failures {
        let mut row = vec![Cell::number(failure.failure)];
        row.extend(failure.wait.iter().chain(&failure.since).map(|length| Cell::number(seconds(*length))));
        row.extend([Cell::number(failure.peak_1s), Cell::number(failure.peak_100ms)]);
        table.row(row);
    }
    table
}

/// Seconds to the hundredth: two units are not enough to tell percentiles apart.
fn seconds(length: Duration) -> String {
    format!("{:.2}s", length.as_secs_f64())
}

fn document(failure: &SimulatedFailure) -> DocumentFailure {
    let [wait_least, wait_p1, wait_p50, wait_p99, wait_most] = failure.wait.map(millis);
    let [since_p1, since_p50, since_p99] = failure.since.map(millis);
    DocumentFailure {
        failure: failure.failure,
        wait_least_ms: wait_least,
        wait_p1_ms: wait_p1,
        wait_p50_ms: wait_p50,
        wait_p99_ms: wait_p99,
        wait_most_ms: wait_most,
        since_p1_ms: since_p1,
        since_p50_ms: since_p50,
        since_p99_ms: since_p99,
        peak_1s: failure.peak_1s,
        peak_100ms: failure.peak_100ms,
    }
}

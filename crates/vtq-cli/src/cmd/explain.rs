//! `vtq explain`: why a message does not run now, and what happened to it so far.

use anyhow::Context;
use serde_json::{Map, Value};

use crate::args::message::ExplainArgs;
use crate::args::{Global, name};
use crate::cmd::attempts;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, clean};

/// The plain facts in the order in which somebody asks for them.
const FACTS: [&str; 12] = [
    "where",
    "state",
    "why",
    "next_at",
    "ahead",
    "attempt",
    "read_ct",
    "priority",
    "enqueued_at",
    "ready_at",
    "expires_at",
    "retry_until",
];
/// What is told of whoever holds it.
const HOLDER: [&str; 7] = ["kind", "worker_id", "host", "pid", "heartbeat_age_s", "since", "until"];

pub(super) async fn run(global: &Global, output: Output, args: &ExplainArgs) -> anyhow::Result<Exit> {
    let (name, id) = name::message(&args.words)?;
    let queue = global.connect().await?.queue(&name)?;
    let told = queue.explain(id).await?;
    let facts: Map<String, Value> =
        serde_json::from_str(told.get()).context("the database explained in no JSON object")?;
    let attempts = queue.attempts(id).await?;
    let is_gone = facts.get("where").is_some_and(|place| place == "gone") && attempts.is_empty();
    if output.is_json() {
        output.json(&told)?;
    } else if is_gone {
        output.remark(&format!("{name}/{id}: {}", facts.get("why").map(shown).unwrap_or_default()));
    } else {
        output.table(table(&format!("{name}/{id}"), &facts))?;
        if !attempts.is_empty() {
            output.line("")?;
            output.table(attempts::table(&attempts))?;
        }
    }
    Ok(if is_gone { Exit::Nothing } else { Exit::Done })
}

fn table(name: &str, facts: &Map<String, Value>) -> Table {
    let mut table = Table::new([]);
    table.row([Cell::text("message"), Cell::text(name)]);
    for fact in FACTS {
        if let Some(value) = facts.get(fact) {
            table.row([Cell::text(fact), Cell::text(shown(value))]);
        }
    }
    let part = |of: &str| facts.get(of).and_then(Value::as_object).cloned().unwrap_or_default();
    let holder = part("holder");
    let known: Vec<String> = HOLDER
        .iter()
        .filter_map(|key| holder.get(*key).map(|value| format!("{key} {}", shown(value))))
        .collect();
    if !known.is_empty() {
        table.row([Cell::text("holder"), Cell::text(known.join(", "))]);
    }
    let letter = part("dead_letter");
    for (key, value) in letter.iter().filter(|(key, _)| key.starts_with("error_") || *key == "reason") {
        table.row([Cell::text(key), Cell::text(shown(value))]);
    }
    let policy = part("policy");
    for (key, layer) in &policy {
        match layer.get("from") {
            Some(_) => table.row([Cell::text(key), Cell::text(layered(layer))]),
            None => {
                for (inner, layer) in layer.as_object().into_iter().flatten() {
                    table.row([Cell::text(format!("{key} {inner}")), Cell::text(layered(layer))]);
                }
            }
        }
    }
    table
}

/// A number and the layer it comes from: `5 (queue)`.
fn layered(layer: &Value) -> String {
    let value = layer.get("value").map(shown).unwrap_or_default();
    let from = layer.get("from").map(shown).unwrap_or_default();
    format!("{value} ({from})")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        Value::Null => "none".into(),
        other => other.to_string(),
    }
}

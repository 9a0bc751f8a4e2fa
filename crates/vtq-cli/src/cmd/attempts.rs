//! `vtq attempts`: the deliveries of a message that did not succeed.

use chrono::{DateTime, Utc};
use serde::Serialize;
use vtq::Attempt;

use crate::args::message::AttemptsArgs;
use crate::args::{Global, name};
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, brief, instant, millis};

/// An attempt, in JSON.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    read_ct: i32,
    attempt: i32,
    outcome: &'a str,
    started_at: Option<DateTime<Utc>>,
    ended_at: DateTime<Utc>,
    took_ms: Option<u64>,
    visible_at: Option<DateTime<Utc>>,
    reason: Option<&'a str>,
    error_class: Option<&'a str>,
    error_code: Option<&'a str>,
    error_message: Option<&'a str>,
    error_detail: Option<&'a str>,
    worker: Option<&'a str>,
}

pub(super) async fn run(global: &Global, output: Output, args: &AttemptsArgs) -> anyhow::Result<Exit> {
    let (name, id) = name::message(&args.words)?;
    let attempts = global.connect().await?.queue(&name)?.attempts(id).await?;
    if output.is_json() {
        output.json(&documents(&attempts))?;
    } else if !attempts.is_empty() {
        output.table(table(&attempts))?;
    }
    if attempts.is_empty() {
        output.remark(&format!("no unsuccessful delivery of {name}/{id} is on record"));
        return Ok(Exit::Nothing);
    }
    Ok(Exit::Done)
}

pub(super) fn documents(attempts: &[Attempt]) -> Vec<Document<'_>> {
    attempts.iter().map(document).collect()
}

pub(super) fn table(attempts: &[Attempt]) -> Table {
    let mut table =
        Table::new(["delivery", "attempt", "outcome", "ended", "took", "due again", "error", "worker"]);
    for attempt in attempts {
        table.row([
            Cell::number(attempt.read_ct),
            Cell::number(attempt.attempt),
            Cell::text(&attempt.outcome),
            Cell::text(instant(attempt.ended_at)),
            Cell::optional(took(attempt).map(brief)),
            Cell::optional(attempt.visible_at.map(instant)),
            Cell::optional(why(attempt)),
            Cell::optional(attempt.worker.as_deref()),
        ]);
    }
    table
}

/// The error in one text, or the reason why it was given back.
fn why(attempt: &Attempt) -> Option<String> {
    let parts = [&attempt.reason, &attempt.error_class, &attempt.error_code, &attempt.error_message];
    let parts: Vec<&str> = parts.into_iter().filter_map(|part| part.as_deref()).collect();
    (!parts.is_empty()).then(|| parts.join(": "))
}

fn took(attempt: &Attempt) -> Option<std::time::Duration> {
    (attempt.ended_at - attempt.started_at?).to_std().ok()
}

fn document(attempt: &Attempt) -> Document<'_> {
    Document {
        read_ct: attempt.read_ct,
        attempt: attempt.attempt,
        outcome: &attempt.outcome,
        started_at: attempt.started_at,
        ended_at: attempt.ended_at,
        took_ms: took(attempt).map(millis),
        visible_at: attempt.visible_at,
        reason: attempt.reason.as_deref(),
        error_class: attempt.error_class.as_deref(),
        error_code: attempt.error_code.as_deref(),
        error_message: attempt.error_message.as_deref(),
        error_detail: attempt.error_detail.as_deref(),
        worker: attempt.worker.as_deref(),
    }
}

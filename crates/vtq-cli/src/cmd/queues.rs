//! `vtq queues`: what is in every queue.

use chrono::{DateTime, Utc};
use serde::Serialize;
use vtq::{Exact, Metrics};

use crate::args::{Global, QueuesArgs};
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, Tone, brief, instant, millis};

/// Counts up to this one are never estimates; see `sql/functions/vtq.metrics.sql`.
const COUNTED_TO: u64 = 5000;

/// A queue, in JSON. Counts are null for a queue that cannot be read.
#[derive(Serialize)]
struct Document<'a> {
    queue: &'a str,
    ready: Option<u64>,
    in_flight: Option<u64>,
    delayed: Option<u64>,
    retrying: Option<u64>,
    waiting: Option<u64>,
    exhausted: Option<u64>,
    expired: Option<u64>,
    dead: Option<u64>,
    oldest_ready_age_ms: Option<u64>,
    oldest_dead_age_ms: Option<u64>,
    last_error_class: Option<&'a str>,
    sent_total: Option<u64>,
    paused: bool,
    paused_until: Option<DateTime<Utc>>,
    pause_reason: Option<&'a str>,
    table_bytes: Option<u64>,
    estimated: bool,
    error: Option<&'a str>,
}

pub(super) async fn run(global: &Global, output: Output, args: &QueuesArgs) -> anyhow::Result<Exit> {
    let (vtq, exact) = match args.exact {
        true => (global.connect_patiently().await?, Exact::Yes),
        false => (global.connect().await?, Exact::No),
    };
    let queues = vtq.metrics_all(exact).await?;
    if output.is_json() {
        output.json(&queues.iter().map(document).collect::<Vec<_>>())?;
    } else if queues.is_empty() {
        output.remark("there are no queues: create one with: vtq queue create NAME");
    } else {
        output.table(table(&queues))?;
    }
    Ok(if queues.is_empty() { Exit::Nothing } else { Exit::Done })
}

fn table(queues: &[Metrics]) -> Table {
    let has =
        |count: fn(&Metrics) -> Option<u64>| queues.iter().any(|queue| count(queue).is_some_and(|ct| ct > 0));
    let (has_exhausted, has_expired) = (has(|queue| queue.exhausted), has(|queue| queue.expired));
    let has_waiting = has(|queue| queue.waiting);
    let mut heads = vec!["queue", "ready", "in flight", "delayed", "retrying"];
    heads.extend(has_waiting.then_some("waiting"));
    heads.extend(has_exhausted.then_some("exhausted"));
    heads.extend(has_expired.then_some("expired"));
    heads.extend(["dead", "oldest ready", "last error", "state"]);
    let mut table = Table::new(heads);
    for queue in queues {
        let marks = Marks::of(queue);
        let mut row = vec![
            Cell::text(&queue.queue),
            count(queue.ready, marks.due),
            count(queue.in_flight, marks.due),
            count(queue.delayed, marks.later),
            count(queue.retrying, marks.later),
        ];
        row.extend(has_waiting.then(|| count(queue.waiting, marks.later)));
        row.extend(has_exhausted.then(|| count(queue.exhausted, marks.due)));
        row.extend(has_expired.then(|| count(queue.expired, marks.due)));
        let dead = count(queue.dead, marks.dead);
        row.push(if queue.dead.is_some_and(|ct| ct > 0) { dead.tone(Tone::Bad) } else { dead });
        row.push(Cell::optional(queue.oldest_ready_age.map(brief)));
        row.push(Cell::optional(queue.last_error_class.as_deref()));
        row.push(state(queue));
        table.row(row);
    }
    table
}

/// Which counts of a queue are estimates: those of a side with more than is counted.
struct Marks {
    due: bool,
    later: bool,
    dead: bool,
}

impl Marks {
    fn of(queue: &Metrics) -> Self {
        let is_many =
            |counts: &[Option<u64>]| queue.is_estimated && counts.iter().flatten().sum::<u64>() >= COUNTED_TO;
        Self {
            due: is_many(&[queue.ready, queue.in_flight, queue.exhausted, queue.expired]),
            later: is_many(&[queue.delayed, queue.retrying, queue.waiting]),
            dead: is_many(&[queue.dead]),
        }
    }
}

fn count(count: Option<u64>, is_estimate: bool) -> Cell {
    match count {
        None => Cell::number("?"),
        Some(number) if is_estimate => Cell::number(format!("~{number}")),
        Some(number) => Cell::number(number),
    }
}

fn state(queue: &Metrics) -> Cell {
    if let Some(error) = &queue.error {
        return Cell::text(format!("broken: {error}")).tone(Tone::Bad);
    }
    if !queue.is_paused {
        return Cell::text("running");
    }
    let mut text = "paused".to_owned();
    if let Some(at) = queue.paused_until {
        text.push_str(&format!(" until {}", instant(at)));
    }
    if let Some(reason) = &queue.pause_reason {
        text.push_str(&format!(": {reason}"));
    }
    Cell::text(text).tone(Tone::Notable)
}

fn document(queue: &Metrics) -> Document<'_> {
    Document {
        queue: &queue.queue,
        ready: queue.ready,
        in_flight: queue.in_flight,
        delayed: queue.delayed,
        retrying: queue.retrying,
        waiting: queue.waiting,
        exhausted: queue.exhausted,
        expired: queue.expired,
        dead: queue.dead,
        oldest_ready_age_ms: queue.oldest_ready_age.map(millis),
        oldest_dead_age_ms: queue.oldest_dead_age.map(millis),
        last_error_class: queue.last_error_class.as_deref(),
        sent_total: queue.sent_total,
        paused: queue.is_paused,
        paused_until: queue.paused_until,
        pause_reason: queue.pause_reason.as_deref(),
        table_bytes: queue.table_bytes,
        estimated: queue.is_estimated,
        error: queue.error.as_deref(),
    }
}

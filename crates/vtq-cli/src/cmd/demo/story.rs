//! The end of the demo: what happened, in tables that fit 80 columns.

use std::fmt::Write;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde_json::Value;

use super::QUEUE;
use super::facts::{DeadLetter, Deliveries, Facts, History, Outcome};

const WIDTH: u16 = 78;

/// The order in which the documentation explains the block's keys.
const BLOCK_KEYS: [&str; 17] = [
    "version",
    "reason",
    "source",
    "source_queue",
    "attempts",
    "max_attempts",
    "read_ct",
    "redrives",
    "first_enqueued_at",
    "dead_lettered_at",
    "error_class",
    "error_code",
    "error_message",
    "error_attempt",
    "error_recorded_at",
    "worker",
    "backtrace",
];

/// Writes the story.
pub(super) fn tell(facts: &Facts) -> String {
    let mut story = String::new();
    section(&mut story, &format!("What became of the {} messages", facts.sent), &outcomes(&facts.outcomes));
    section(&mut story, "Where the time went", &deliveries(&facts.deliveries));
    let _ = writeln!(story, "{}", pace(facts));
    if let Some(told) = &facts.history {
        let title = format!("The deliveries of {QUEUE}/{}{}", told.msg_id, event(told));
        section(&mut story, &title, &history(told));
    }
    if let Some(letter) = &facts.dead_letter {
        let title = format!("Why {QUEUE}/{} is dead: its header vtq_dead_letter", letter.msg_id);
        section(&mut story, &title, &block(letter));
    }
    let _ = writeln!(
        story,
        "\n{} sent = {} handled + {} dead, and none is left: every message ended, and ended once.",
        facts.sent, facts.handled, facts.dead
    );
    story
}

fn section(story: &mut String, title: &str, table: &Table) {
    let _ = writeln!(story, "\n{title}\n{}", table.trim_fmt());
}

fn outcomes(outcomes: &[Outcome]) -> Table {
    let mut table = table(&["", "messages", "such as"], &[1]);
    for outcome in outcomes {
        let how = match (outcome.is_handled, outcome.how.as_str()) {
            (true, "first_delivery") => "handled at the first delivery".to_owned(),
            (true, "after_failing") => "failed, retried, then handled".to_owned(),
            (true, "after_given_back") => "given back for later, then handled".to_owned(),
            (true, "after_worker_died") => "held by a worker that died, then handled".to_owned(),
            (_, reason) => format!("dead: {reason}"),
        };
        table.add_row([how, outcome.messages.to_string(), format!("{QUEUE}/{}", outcome.such_as)]);
    }
    table
}

fn deliveries(rows: &[Deliveries]) -> Table {
    let mut table = table(&["a delivery ended as", "how often", "held for", "then waited"], &[1, 2, 3]);
    for row in rows {
        let waited = if row.waited_ms > 0 { seconds(row.waited_ms) } else { String::new() };
        table.add_row([row.outcome.clone(), row.deliveries.to_string(), seconds(row.held_ms), waited]);
    }
    table
}

fn pace(facts: &Facts) -> String {
    let deliveries: u64 = facts.deliveries.iter().map(|row| row.deliveries).sum();
    let rate = facts.sent as f64 * 1000.0 / facts.elapsed_ms.max(1) as f64;
    format!(
        "{deliveries} deliveries in {}, {rate:.0} messages/s (the handler sleeps on purpose); {} workers died.",
        seconds(facts.elapsed_ms),
        facts.workers_died
    )
}

fn event(history: &History) -> String {
    history.event.as_ref().map(|event| format!(", a `{event}` webhook")).unwrap_or_default()
}

fn history(history: &History) -> Table {
    let mut table = table(&["delivery", "attempt", "at", "ended as", "after", "next in", "why"], &[0, 1, 2, 4, 5]);
    for delivery in &history.deliveries {
        table.add_row([
            delivery.read_ct.to_string(),
            delivery.attempt.to_string(),
            exact(delivery.started_after_ms),
            delivery.outcome.clone(),
            exact(delivery.held_ms),
            delivery.waited_ms.map(exact).unwrap_or_default(),
            delivery.why.clone().unwrap_or_default(),
        ]);
    }
    table
}

fn block(letter: &DeadLetter) -> Table {
    let mut table = table(&[], &[]);
    let known = BLOCK_KEYS.iter().filter_map(|&key| Some((key, letter.block.get(key)?)));
    let unknown = letter.block.iter().filter(|(key, _)| !BLOCK_KEYS.contains(&key.as_str()));
    for (key, value) in known.chain(unknown.map(|(key, value)| (key.as_str(), value))) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let text = if let Value::Array(lines) = value { lines_of(lines) } else { text };
        table.add_row([key.to_owned(), text]);
    }
    table
}

fn lines_of(lines: &[Value]) -> String {
    lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

fn table(header: &[&str], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    if !header.is_empty() {
        table.set_header(header.iter().copied());
    }
    for &index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1000.0)
}

fn exact(ms: u64) -> String {
    format!("{:.2} s", ms as f64 / 1000.0)
}

//! The end of the demo: what happened, in tables that fit 80 columns.

use serde_json::Value;

use super::QUEUE;
use super::facts::{DeadLetter, Deliveries, Delivery, Facts, Outcome};
use crate::output::{Cell, Output, Table, Tone};

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

/// Prints the story.
pub(super) fn tell(facts: &Facts, output: Output) -> anyhow::Result<()> {
    title(&format!("What became of the {} messages", facts.sent), output)?;
    output.table(outcomes(&facts.outcomes))?;

    title("Where the time went", output)?;
    output.table(deliveries(&facts.deliveries))?;
    output.line(&pace(facts))?;

    if let Some(history) = &facts.history {
        let event = history.event.as_ref().map(|event| format!(" (`{event}`)")).unwrap_or_default();
        title(&format!("The deliveries of {QUEUE}/{}{event}", history.msg_id), output)?;
        output.table(table_of_history(&history.deliveries))?;
    }
    if let Some(letter) = &facts.dead_letter {
        title(&format!("Why {QUEUE}/{} is dead: its header vtq_dead_letter", letter.msg_id), output)?;
        output.table(block(letter))?;
    }
    Ok(())
}

/// Says that it all adds up; to be called when it does.
pub(super) fn conclude(facts: &Facts, output: Output) -> anyhow::Result<()> {
    let Facts { sent, handled, dead, .. } = facts;
    output.line(&format!(
        "\n{sent} sent = {handled} handled + {dead} dead, none left: every message ended, and ended once."
    ))
}

fn title(text: &str, output: Output) -> anyhow::Result<()> {
    output.line(&format!("\n{text}\n{}", "─".repeat(78)))
}

fn outcomes(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(["outcome", "messages", "such as"]);
    for outcome in outcomes {
        let (how, tone) = match (outcome.is_handled, outcome.how.as_str()) {
            (true, "first_delivery") => ("handled at the first delivery".to_owned(), Tone::Good),
            (true, "after_failing") => ("failed, retried, then handled".to_owned(), Tone::Good),
            (true, "after_given_back") => ("given back for later, then handled".to_owned(), Tone::Good),
            (true, "after_worker_died") => {
                ("held by a worker that died, then handled".to_owned(), Tone::Good)
            }
            (_, reason) => (format!("dead: {reason}"), Tone::Bad),
        };
        table.row([
            Cell::text(how).tone(tone),
            Cell::number(outcome.messages),
            Cell::text(format!("{QUEUE}/{}", outcome.such_as)),
        ]);
    }
    table
}

fn deliveries(rows: &[Deliveries]) -> Table {
    let mut table = Table::new(["ended as", "deliveries", "held for", "then waited", "because"]);
    for row in rows {
        let waited = if row.waited_ms > 0 { seconds(row.waited_ms) } else { "-".into() };
        table.row([
            Cell::text(&row.outcome),
            Cell::number(row.deliveries),
            Cell::number(seconds(row.held_ms)),
            Cell::number(waited),
            Cell::text(because(&row.outcome)),
        ]);
    }
    table
}

fn because(outcome: &str) -> &'static str {
    match outcome {
        "done" => "the handler said so",
        "failed" => "a retry may mend it",
        "permanent" => "no retry can mend it",
        "deferred" => "not now, said the handler",
        "abandoned" => "its worker died in it",
        "never_started" => "its worker died before it",
        _ => "",
    }
}

fn pace(facts: &Facts) -> String {
    let deliveries: u64 = facts.deliveries.iter().map(|row| row.deliveries).sum();
    let rate = facts.sent as f64 * 1000.0 / facts.elapsed_ms.max(1) as f64;
    format!(
        "{deliveries} deliveries in {}: {rate:.0} messages/s, as the handler sleeps; {} workers died",
        seconds(facts.elapsed_ms),
        facts.workers_died
    )
}

fn table_of_history(deliveries: &[Delivery]) -> Table {
    let mut table = Table::new(["delivery", "attempt", "at", "ended as", "after", "next in", "why"]);
    for delivery in deliveries {
        table.row([
            Cell::number(delivery.read_ct),
            Cell::number(delivery.attempt),
            Cell::number(exact(delivery.started_after_ms)),
            Cell::text(&delivery.outcome),
            Cell::number(exact(delivery.held_ms)),
            Cell::number(delivery.waited_ms.map_or_else(|| "-".into(), exact)),
            Cell::text(delivery.why.as_deref().unwrap_or("-")),
        ]);
    }
    table
}

fn block(letter: &DeadLetter) -> Table {
    let mut table = Table::new([]);
    let known = BLOCK_KEYS.iter().filter_map(|&key| Some((key, letter.block.get(key)?)));
    let others = letter.block.iter().filter(|(key, _)| !BLOCK_KEYS.contains(&key.as_str()));
    for (key, value) in known.chain(others.map(|(key, value)| (key.as_str(), value))) {
        for (place, line) in lines(value).into_iter().enumerate() {
            table.row([Cell::text(if place == 0 { key } else { "" }), Cell::text(line)]);
        }
    }
    table
}

/// A backtrace has many, anything else one.
fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Array(lines) => lines.iter().flat_map(self::lines).collect(),
        Value::String(text) => text.lines().map(str::to_owned).collect(),
        other => vec![other.to_string()],
    }
}

fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1000.0)
}

fn exact(ms: u64) -> String {
    format!("{:.2} s", ms as f64 / 1000.0)
}

//! `vtq dlq show`: one dead letter, why it died, and its attempts.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use vtq::{Attempt, DeadLetterDetail, MessageId, QueueName};

use crate::args::dlq::ShowArgs;
use crate::args::{Global, name};
use crate::cmd::attempts;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, clean, instant};

/// The parts of the block in the order in which somebody asks for them.
const PARTS: [&str; 15] = [
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
];

/// A dead letter, in JSON.
#[derive(Serialize)]
struct Document<'a> {
    queue: &'a str,
    msg_id: MessageId,
    dead_lettered_at: DateTime<Utc>,
    enqueued_at: DateTime<Utc>,
    read_ct: i32,
    dead_letter: Map<String, Value>,
    attempts: Vec<attempts::Document<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a RawValue>,
}

pub(super) async fn run(global: &Global, output: Output, args: &ShowArgs) -> anyhow::Result<Exit> {
    let (name, id) = name::message(&args.words)?;
    let queue = global.connect().await?.queue(&name)?;
    let Some(letter) = queue.dlq_show(id).await? else {
        output.remark(&format!("{name}/{id} is not among the dead letters"));
        return Ok(Exit::Nothing);
    };
    let attempts = queue.attempts(id).await?;
    if output.is_json() {
        output.json(&document(&name, &letter, &attempts, args.payload))?;
    } else {
        text(output, &name, &letter, &attempts, args.payload)?;
    }
    Ok(Exit::Done)
}

fn document<'a>(
    name: &'a QueueName,
    letter: &'a DeadLetterDetail,
    attempts: &'a [Attempt],
    is_whole: bool,
) -> Document<'a> {
    Document {
        queue: name.as_str(),
        msg_id: letter.id,
        dead_lettered_at: letter.dead_lettered_at,
        enqueued_at: letter.enqueued_at,
        read_ct: letter.read_ct,
        dead_letter: block(letter),
        attempts: attempts::documents(attempts),
        headers: is_whole.then_some(&*letter.headers),
        message: is_whole.then_some(&*letter.body),
    }
}

fn text(
    output: Output,
    name: &QueueName,
    letter: &DeadLetterDetail,
    attempts: &[Attempt],
    is_whole: bool,
) -> anyhow::Result<()> {
    let block = block(letter);
    let mut table = Table::new([]);
    table.row([Cell::text("message"), Cell::text(format!("{name}/{}", letter.id))]);
    for part in PARTS {
        if let Some(value) = block.get(part) {
            table.row([Cell::text(part), Cell::text(shown(value))]);
        }
    }
    if block.is_empty() {
        // Put there by hand: the row itself is all that is known.
        table.row([Cell::text("dead_lettered_at"), Cell::text(instant(letter.dead_lettered_at))]);
    }
    output.table(table)?;
    if let Some(Value::String(backtrace)) = block.get("backtrace") {
        let lines: Vec<String> = backtrace.lines().map(|line| format!("  {}", clean(line))).collect();
        output.line(&format!("\nbacktrace\n{}", lines.join("\n")))?;
    }
    if is_whole {
        output.line(&format!("\nheaders\n{}\n\nmessage\n{}", letter.headers, letter.body))?;
    }
    if !attempts.is_empty() {
        output.line("")?;
        output.table(attempts::table(attempts))?;
    }
    Ok(())
}

fn block(letter: &DeadLetterDetail) -> Map<String, Value> {
    let headers: Map<String, Value> = serde_json::from_str(letter.headers.get()).unwrap_or_default();
    match headers.get("vtq_dead_letter") {
        Some(Value::Object(block)) => block.clone(),
        _ => Map::new(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

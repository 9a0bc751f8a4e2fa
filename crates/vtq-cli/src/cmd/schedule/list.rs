//! `vtq schedule list`: the schedules, and how far each has come.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use vtq::{Missed, ScheduleInfo, ScheduleState};

use crate::args::Global;
use crate::args::schedule::ListArgs;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, Tone, instant, millis};

/// A schedule, in JSON.
#[derive(Serialize)]
struct Document<'a> {
    schedule: &'a str,
    state: String,
    cron: &'a str,
    timezone: &'a str,
    queue: &'a str,
    next_at: Option<DateTime<Utc>>,
    last_tick_at: Option<DateTime<Utc>>,
    last_sent_at: Option<DateTime<Utc>>,
    last_msg_id: Option<i64>,
    sent: u64,
    skipped: u64,
    missed: &'static str,
    missed_cap: Option<u16>,
    grace_ms: u64,
    paused_until: Option<DateTime<Utc>>,
    pause_reason: Option<&'a str>,
    error: Option<&'a str>,
    error_at: Option<DateTime<Utc>>,
    #[serde(flatten)]
    payload: Option<Payload<'a>>,
}

#[derive(Serialize)]
struct Payload<'a> {
    headers: &'a RawValue,
    message: &'a RawValue,
}

pub(super) async fn run(global: &Global, output: Output, args: &ListArgs) -> anyhow::Result<Exit> {
    let schedules = global.connect().await?.schedules().await?;
    if output.is_json() {
        output.json(&schedules.iter().map(|info| document(info, args.payload)).collect::<Vec<_>>())?;
    } else if schedules.is_empty() {
        output.remark("there are no schedules: add one with: vtq schedule add NAME");
    } else {
        output.table(table(&schedules))?;
    }
    Ok(if schedules.is_empty() { Exit::Nothing } else { Exit::Done })
}

fn table(schedules: &[ScheduleInfo]) -> Table {
    let heads =
        ["schedule", "cron", "zone", "queue", "next tick", "last tick", "sent", "skipped", "state", "why"];
    let mut table = Table::new(heads);
    for info in schedules {
        let tone = match info.state {
            ScheduleState::Failing => Tone::Bad,
            ScheduleState::Paused | ScheduleState::Ended => Tone::Notable,
            _ => Tone::Plain,
        };
        table.row([
            Cell::text(&info.name),
            Cell::text(&info.cron),
            Cell::text(&info.timezone),
            Cell::text(&info.queue),
            Cell::optional(info.next_at.map(instant)),
            Cell::optional(info.last_tick_at.map(instant)),
            Cell::number(info.sent_total),
            Cell::number(info.skipped_total),
            Cell::text(info.state).tone(tone),
            Cell::text(why(info)),
        ]);
    }
    table
}

/// Why it does not send.
fn why(info: &ScheduleInfo) -> String {
    match info.state {
        ScheduleState::Paused => {
            let until = info.paused_until.map(|at| format!("until {}", instant(at)));
            [until.as_deref(), info.pause_reason.as_deref()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", ")
        }
        _ => info.error.clone().unwrap_or_default(),
    }
}

fn document(info: &ScheduleInfo, has_payload: bool) -> Document<'_> {
    let (missed, missed_cap) = match info.missed {
        Missed::Skip => ("skip", None),
        Missed::Once => ("once", None),
        Missed::All { cap } => ("all", Some(cap)),
    };
    Document {
        schedule: &info.name,
        state: info.state.to_string(),
        cron: &info.cron,
        timezone: &info.timezone,
        queue: &info.queue,
        next_at: info.next_at,
        last_tick_at: info.last_tick_at,
        last_sent_at: info.last_sent_at,
        last_msg_id: info.last_id,
        sent: info.sent_total,
        skipped: info.skipped_total,
        missed,
        missed_cap,
        grace_ms: millis(info.grace),
        paused_until: info.paused_until,
        pause_reason: info.pause_reason.as_deref(),
        error: info.error.as_deref(),
        error_at: info.error_at,
        payload: has_payload.then_some(Payload { headers: &info.headers, message: &info.body }),
    }
}

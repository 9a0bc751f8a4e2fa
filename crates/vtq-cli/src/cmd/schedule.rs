//! `vtq schedule`: messages that are sent by cron expressions.

mod list;

use std::io::Read;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use vtq::{Created, Missed, Outgoing, Schedule, ScheduleInfo, Vtq};

use crate::args::Global;
use crate::args::schedule::{AddArgs, MissedArg, NameArgs, PauseArgs, ScheduleCommand};
use crate::cmd::pause::from_now;
use crate::cmd::send;
use crate::exit::Exit;
use crate::output::{Output, instant};

pub(super) async fn run(global: &Global, output: Output, command: ScheduleCommand) -> anyhow::Result<Exit> {
    match command {
        ScheduleCommand::Add(args) => add(global, output, *args).await,
        ScheduleCommand::List(args) => list::run(global, output, &args).await,
        ScheduleCommand::Pause(args) => pause(global, output, args).await,
        ScheduleCommand::Resume(args) => resume(global, output, args).await,
        ScheduleCommand::Run(args) => run_now(global, output, args).await,
        ScheduleCommand::Remove(args) => remove(global, output, args).await,
    }
}

async fn add(global: &Global, output: Output, args: AddArgs) -> anyhow::Result<Exit> {
    let name = args.name.clone();
    let schedule = schedule(args)?;
    let vtq = global.connect().await?;
    let is_new = vtq.schedule_add(&schedule).await? == Created::New;
    let info = look_up(&vtq, &name).await?;
    let next_at = info.and_then(|info| info.next_at);
    let next = match next_at {
        Some(at) => format!("next tick {}", instant(at)),
        None => "no tick in sight".into(),
    };
    let verb = if is_new { "added" } else { "changed" };
    let document = json!({"schedule": name, "created": is_new, "next_at": next_at});
    output.done(&format!("schedule `{name}` {verb}: {next}"), &document)?;
    Ok(Exit::Done)
}

/// Takes a schedule from the arguments; the database is needed for the rest.
fn schedule(args: AddArgs) -> anyhow::Result<Schedule> {
    let missed = match (args.missed, args.cap) {
        (MissedArg::All, cap) => Missed::All { cap: cap.unwrap_or(100) },
        (_, Some(_)) => bail!("--cap goes with --missed all: the others make up for one tick or none"),
        (MissedArg::Once, None) => Missed::Once,
        (MissedArg::Skip, None) => Missed::Skip,
    };
    let message = message(&args.message)?;
    let mut schedule = Schedule::new(args.name, args.cron, args.queue.as_str(), message)
        .timezone(args.timezone)
        .missed(missed)
        .headers(headers(&args.options.header)?);
    if let Some(grace) = args.grace {
        schedule = schedule.grace(grace);
    }
    if let Some(delay) = args.options.delay {
        schedule = schedule.delay(delay);
    }
    if let Some(priority) = args.options.priority {
        schedule = schedule.priority(priority);
    }
    if let Some(max_attempts) = args.options.max_attempts {
        schedule = schedule.max_attempts(max_attempts);
    }
    if let Some(length) = args.options.expires_in {
        schedule = schedule.expires_in(length);
    }
    Ok(schedule)
}

fn message(text: &str) -> anyhow::Result<Outgoing> {
    if text != "-" {
        return send::message(text);
    }
    let mut read = String::new();
    std::io::stdin().read_to_string(&mut read).context("cannot read the message from standard input")?;
    send::message(read.trim())
}

fn headers(words: &[String]) -> anyhow::Result<Map<String, Value>> {
    let header = |word: &String| {
        // The value is not quoted in the refusal: headers carry credentials.
        let (name, value) = word.split_once('=').context("a --header has no value: give NAME=VALUE")?;
        Ok((name.to_owned(), value.into()))
    };
    words.iter().map(header).collect()
}

async fn look_up(vtq: &Vtq, name: &str) -> anyhow::Result<Option<ScheduleInfo>> {
    Ok(vtq.schedules().await?.into_iter().find(|info| info.name == name))
}

async fn pause(global: &Global, output: Output, args: PauseArgs) -> anyhow::Result<Exit> {
    let vtq = global.connect().await?;
    let until = match args.length {
        Some(length) => Some(from_now(&vtq, "--for", length).await?),
        None => args.until,
    };
    let was_running = vtq.schedule_pause(&args.name, args.reason.as_deref(), until).await?;
    let document = json!({
        "schedule": args.name,
        "paused": true,
        "was_paused": !was_running,
        "paused_until": until,
        "pause_reason": args.reason,
    });
    let end = until.map(|at| format!(" until {}", instant(at))).unwrap_or_default();
    let before = if was_running { "" } else { "; it was paused before" };
    output.done(&format!("schedule `{}` is paused{end}{before}", args.name), &document)?;
    Ok(Exit::Done)
}

async fn resume(global: &Global, output: Output, args: NameArgs) -> anyhow::Result<Exit> {
    let was_paused = global.connect().await?.schedule_resume(&args.name).await?;
    output.done_or_remark(
        was_paused,
        &format!("schedule `{}` is running again", args.name),
        &format!("schedule `{}` was not paused", args.name),
        &json!({"schedule": args.name, "paused": false, "was_paused": was_paused}),
    )?;
    Ok(if was_paused { Exit::Done } else { Exit::Nothing })
}

async fn run_now(global: &Global, output: Output, args: NameArgs) -> anyhow::Result<Exit> {
    let id = global.connect().await?.schedule_run(&args.name).await?;
    match output.is_json() {
        true => output.json(&json!({"schedule": args.name, "msg_id": id}))?,
        false => output.line(&id.to_string())?,
    }
    Ok(Exit::Done)
}

async fn remove(global: &Global, output: Output, args: NameArgs) -> anyhow::Result<Exit> {
    let is_removed = global.connect().await?.schedule_remove(&args.name).await?;
    output.done_or_remark(
        is_removed,
        &format!("schedule `{}` removed", args.name),
        &format!("schedule `{}` does not exist", args.name),
        &json!({"schedule": args.name, "removed": is_removed}),
    )?;
    Ok(if is_removed { Exit::Done } else { Exit::Nothing })
}

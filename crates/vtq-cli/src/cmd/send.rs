//! `vtq send`: one message, a file, or a stream.

mod file;
mod lines;
mod stream;

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::json;
use vtq::{OnConflict, Outgoing, Queue, SendOptions, UniqueUntil, Vtq};

use self::lines::{Batch, Lines};
use crate::args::Global;
use crate::args::send::{self, KeyArgs, OptionArgs, SendArgs};
use crate::cmd::pause::from_now;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::Output;

pub(super) async fn run(
    global: &Global,
    output: Output,
    args: SendArgs,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let options = keys(options(&args.options)?, &args.keys);
    let is_dash = args.message.as_deref() == Some("-") || args.file.as_deref() == Some(Path::new("-"));
    match (&args.message, &args.file) {
        (Some(text), _) if !is_dash => one(global, output, &args, text, options).await,
        (_, Some(path)) if !is_dash => file::run(global, output, &args, path, options, interrupt).await,
        _ if !is_dash && io::stdin().is_terminal() => {
            bail!(
                "nothing to send: give a message as JSON, a --file, or lines on standard input (`-` to type them)"
            )
        }
        _ => stream::run(global, output, &args, options, interrupt).await,
    }
}

async fn one(
    global: &Global,
    output: Output,
    args: &SendArgs,
    text: &str,
    options: SendOptions,
) -> anyhow::Result<Exit> {
    let message = message(text)?;
    let vtq = global.connect().await?;
    let options = expiring(&vtq, options, &args.options).await?;
    let queue = vtq.queue(&args.queue)?;
    if args.keys.unique_key.is_some() {
        let report = queue.send_report(&message, &options).await?;
        let outcome = report.outcome.as_str();
        match output.is_json() {
            true => output
                .json(&json!({"queue": args.queue.as_str(), "msg_id": report.id, "outcome": outcome}))?,
            false => output.line(&format!("{} {outcome}", report.id))?,
        }
        return Ok(Exit::Done);
    }
    let id = queue.send_with(&message, &options).await?;
    match output.is_json() {
        true => output.json(&json!({"queue": args.queue.as_str(), "msg_id": id}))?,
        false => output.line(&id.to_string())?,
    }
    Ok(Exit::Done)
}

/// Reads a message.
pub(super) fn message(text: &str) -> anyhow::Result<Outgoing> {
    match Outgoing::from_json(text) {
        Ok(message) => Ok(message),
        // A word without quotes around it is what people try first.
        Err(error) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() => {
            bail!("{error}; a text is written with quotes of its own: '\"hello\"'")
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes from the options what needs no database.
fn options(args: &OptionArgs) -> anyhow::Result<SendOptions> {
    let mut options = SendOptions::new();
    for word in &args.header {
        // The value is not quoted in the refusal: headers carry credentials.
        let (name, value) = word.split_once('=').context("a --header has no value: give NAME=VALUE")?;
        options = options.header(name, value);
    }
    if let Some(delay) = args.delay {
        options = options.delay(delay);
    }
    if let Some(at) = args.at {
        options = options.visible_at(at);
    }
    if let Some(priority) = args.priority {
        options = options.priority(priority);
    }
    if let Some(max_attempts) = args.max_attempts {
        options = options.max_attempts(max_attempts);
    }
    if let Some(at) = args.expires_at {
        options = options.expires_at(at);
    }
    if let Some(at) = args.retry_until {
        options = options.retry_until(at);
    }
    Ok(options)
}

fn keys(mut options: SendOptions, args: &KeyArgs) -> SendOptions {
    if let Some(key) = &args.unique_key {
        options = options.unique_key(key);
    }
    if let Some(until) = args.unique_until {
        options = options.unique_until(match until {
            send::UniqueUntil::Done => UniqueUntil::Done,
            send::UniqueUntil::Started => UniqueUntil::Started,
        });
    }
    if let Some(length) = args.unique_for {
        options = options.unique_for(length);
    }
    if let Some(how) = args.on_conflict {
        options = options.on_conflict(match how {
            send::OnConflict::Skip => OnConflict::Skip,
            send::OnConflict::Replace => OnConflict::Replace,
            send::OnConflict::Error => OnConflict::Error,
        });
    }
    if let Some(length) = args.max_wait {
        options = options.max_wait(length);
    }
    if let Some(key) = &args.group_key {
        options = options.group_key(key);
    }
    if let Some(key) = &args.exclusive_key {
        options = options.exclusive_key(key);
    }
    options
}

/// Counts --expires-in and --retry-for from now, on the database's clock.
async fn expiring(vtq: &Vtq, mut options: SendOptions, args: &OptionArgs) -> anyhow::Result<SendOptions> {
    if let Some(length) = args.expires_in {
        options = options.expires_at(from_now(vtq, "--expires-in", length).await?);
    }
    if let Some(length) = args.retry_for {
        options = options.retry_until(from_now(vtq, "--retry-for", length).await?);
    }
    Ok(options)
}

/// Says how many were sent.
fn conclude(output: Output, queue: &Queue, sent: u64) -> anyhow::Result<Exit> {
    let text = format!("{sent} message{} sent to {}", if sent == 1 { "" } else { "s" }, queue.name());
    output.done(&text, &json!({"queue": queue.name().as_str(), "sent": sent}))?;
    Ok(Exit::Done)
}

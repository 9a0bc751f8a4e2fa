//! `vtq dlq`: the dead letters.

mod list;
mod purge;
mod retry;
mod show;

use chrono::{DateTime, Utc};
use serde::Serialize;
use vtq::{DeadLetter, MessageId, Queue};

use crate::args::Global;
use crate::args::dlq::DlqCommand;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// The most that a page may have.
const PAGE: u16 = 10_000;

pub(super) async fn run(
    global: &Global,
    output: Output,
    command: DlqCommand,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    match command {
        DlqCommand::List(args) => list::run(global, output, args).await,
        DlqCommand::Show(args) => show::run(global, output, &args).await,
        DlqCommand::Retry(args) => retry::some(global, output, &args).await,
        DlqCommand::RetryAll(args) => retry::all(global, output, args, interrupt).await,
        DlqCommand::Purge(args) => purge::run(global, output, &args, interrupt).await,
    }
}

/// Counts the dead letters before a place in their order that fit, page by page and truly all of them.
async fn count(
    queue: &Queue,
    before: (DateTime<Utc>, MessageId),
    fits: impl Fn(&DeadLetter) -> bool,
) -> vtq::Result<u64> {
    let (mut before, mut number) = (before, 0);
    loop {
        let page = queue.dlq_list(PAGE, Some(before)).await?;
        number += page.iter().filter(|letter| fits(letter)).count() as u64;
        match page.last() {
            Some(last) if page.len() == usize::from(PAGE) => before = (last.dead_lettered_at, last.id),
            _ => return Ok(number),
        }
    }
}

/// `1 dead letter`, `2 dead letters`.
fn letters(number: u64) -> String {
    format!("{number} dead letter{}", if number == 1 { "" } else { "s" })
}

/// Prints what a command did with all that fit, and tells whether it came to its end.
fn conclude(
    output: Output,
    interrupt: &Interrupt,
    number: u64,
    is_dry_run: bool,
    text: &str,
    document: &impl Serialize,
) -> anyhow::Result<Exit> {
    match is_dry_run && !output.is_json() {
        // The number is what was asked for, so that --quiet does not silence it.
        true => output.line(text)?,
        false => output.done(text, document)?,
    }
    if interrupt.is_requested() && !is_dry_run {
        output.remark("interrupted: the rest is as it was");
        return Ok(Exit::Interrupted);
    }
    Ok(if number == 0 { Exit::Nothing } else { Exit::Done })
}

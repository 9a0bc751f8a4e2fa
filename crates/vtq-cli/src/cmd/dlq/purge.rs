//! `vtq dlq purge`: removing dead letters for good.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use chrono::TimeDelta;
use serde_json::json;
use vtq::{Exact, MessageId, Purge, Queue, QueueName};

use super::{PAGE, count, letters};
use crate::args::Global;
use crate::args::dlq::PurgeArgs;
use crate::cmd::cancel::{Words, each};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, ask};

/// Up to here dead letters are counted one by one; see `sql/functions/vtq._count_dead.sql`.
const COUNTED_TO: u64 = 5000;

pub(super) async fn run(
    global: &Global,
    output: Output,
    args: &PurgeArgs,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let age = if args.all { Some(Duration::ZERO) } else { args.older_than };
    match age {
        Some(age) => by_age(global, output, args, interrupt, age).await,
        None if args.dry_run => bail!("--dry-run goes with --all or --older-than"),
        None => some(global, output, args).await,
    }
}

async fn some(global: &Global, output: Output, args: &PurgeArgs) -> anyhow::Result<Exit> {
    if let [word] = args.names.words.as_slice()
        && !word.contains('/')
    {
        bail!("{word:?} names no dead letter: give QUEUE/ID, or say --all or --older-than LENGTH");
    }
    let words = Words { done: "purged", not: "not among the dead letters" };
    each(global, output, &args.names.words, words, async |queue, id| {
        Ok(queue.dlq_purge(Purge::One(id), 1).await? > 0)
    })
    .await
}

async fn by_age(
    global: &Global,
    output: Output,
    args: &PurgeArgs,
    interrupt: &Interrupt,
    age: Duration,
) -> anyhow::Result<Exit> {
    let [word] = args.names.words.as_slice() else {
        bail!("--all and --older-than take the name of one queue and nothing else");
    };
    let name = QueueName::new(word)?;
    let vtq = global.connect().await?;
    let queue = vtq.queue(&name)?;
    if args.dry_run {
        let refusal = || format!("--older-than {age:?} is longer than any calendar");
        let age = TimeDelta::from_std(age).ok().with_context(refusal)?;
        let end = vtq.now().await?.checked_sub_signed(age).with_context(refusal)?;
        let number = count(&queue, (end, MessageId::MAX), |_| true).await?;
        let text = format!("{} would be purged", letters(number));
        let document = json!({"queue": name.as_str(), "would_purge": number});
        return super::conclude(output, interrupt, number, true, &text, &document);
    }
    if args.all && !args.yes && !agreed(&queue).await? {
        output.remark("nothing was purged");
        return Ok(Exit::Nothing);
    }
    let number = purge(output, &queue, interrupt, age).await?;
    let text = format!("{} purged", letters(number));
    super::conclude(
        output,
        interrupt,
        number,
        false,
        &text,
        &json!({"queue": name.as_str(), "purged": number}),
    )
}

async fn agreed(queue: &Queue) -> anyhow::Result<bool> {
    let metrics = queue.metrics(Exact::No).await?;
    let number = metrics.dead.unwrap_or(0);
    let or_more = if metrics.is_estimated && number > COUNTED_TO { " or more" } else { "" };
    let what = format!("all dead letters of queue `{}`, {number}{or_more},", queue.name());
    match ask(&format!("purge {what} for good?"))? {
        Some(answer) => Ok(answer),
        None => bail!("{what} would be purged for good: say --yes if that is what you want"),
    }
}

async fn purge(output: Output, queue: &Queue, interrupt: &Interrupt, age: Duration) -> anyhow::Result<u64> {
    let bar = output.progress("purged", None);
    let start = Instant::now();
    let mut number = 0;
    while !interrupt.is_requested() {
        // The age grows with the loop, so that what dies while it runs is left alone.
        let removed = queue
            .dlq_purge(Purge::OlderThan(age + start.elapsed()), PAGE)
            .await
            .map_err(anyhow::Error::new)
            .with_context(|| format!("{} purged before this happened", letters(number)))?;
        if removed == 0 {
            break;
        }
        number += removed;
        bar.add(removed);
    }
    bar.finish();
    Ok(number)
}

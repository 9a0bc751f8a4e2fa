//! `vtq dlq retry` and `vtq dlq retry-all`: sending dead letters back.

use anyhow::Context;
use serde_json::json;
use vtq::{Exact, MessageId, Queue, RedriveFilter, Vtq};

use super::{count, letters};
use crate::args::Global;
use crate::args::dlq::{RetryAllArgs, RetryArgs};
use crate::cmd::cancel::{Words, each};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// One transaction each: long enough to be quick, short enough to be in nobody's way.
const BATCH: u16 = 1000;

pub(super) async fn some(global: &Global, output: Output, args: &RetryArgs) -> anyhow::Result<Exit> {
    let words = Words { done: "sent back", not: "not among the dead letters" };
    each(global, output, &args.names.words, words, async |queue, id| queue.redrive(id, args.delay).await)
        .await
}

pub(super) async fn all(
    global: &Global,
    output: Output,
    args: RetryAllArgs,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let vtq = global.connect().await?;
    // What dies again while this runs must not be sent back again.
    let start = vtq.now().await?;
    let mut filter = RedriveFilter::new().dead_before(start);
    if let Some(reason) = &args.reason {
        filter = filter.reason(reason);
    }
    if let Some(class) = &args.class {
        filter = filter.error_class(class);
    }
    let mut total = 0;
    let mut taken = 0;
    let mut documents = Vec::new();
    let bar = output.progress("sent back", None);
    for queue in queues(&vtq, &args).await? {
        let number = if args.dry_run {
            count(&queue, (start, MessageId::MIN), |letter| {
                args.reason.as_ref().is_none_or(|reason| *reason == letter.reason)
                    && args.class.as_ref().is_none_or(|class| Some(class) == letter.error_class.as_ref())
            })
            .await?
        } else {
            let mut number = 0;
            while !interrupt.is_requested() {
                let moved =
                    queue.redrive_all(BATCH, &filter).await.map_err(anyhow::Error::new).with_context(
                        || format!("{} sent back before this happened", letters(total + number)),
                    )?;
                if moved == 0 {
                    break;
                }
                number += moved;
                bar.add(moved);
            }
            number
        };
        total += number;
        let stayed = match args.dry_run {
            true => 0,
            false => queue.redrive_taken(&filter).await?,
        };
        taken += stayed;
        let mut document = json!({"queue": queue.name().as_str(), "sent_back": number});
        if stayed > 0 {
            document["key_taken"] = json!(stayed);
        }
        documents.push(document);
    }
    bar.finish();
    let key = if args.dry_run { "would_send_back" } else { "sent_back" };
    let document = json!({key: total, "queues": documents});
    let text = match args.dry_run {
        true => format!("{} would be sent back", letters(total)),
        false if taken == 0 => format!("{} sent back", letters(total)),
        false => format!("{} sent back; {taken} not: another message has the unique key", letters(total)),
    };
    super::conclude(output, interrupt, total, args.dry_run, &text, &document)
}

async fn queues(vtq: &Vtq, args: &RetryAllArgs) -> vtq::Result<Vec<Queue>> {
    if let Some(name) = &args.queue {
        return Ok(vec![vtq.queue(name)?]);
    }
    vtq.metrics_all(Exact::No).await?.iter().map(|metrics| vtq.queue(&metrics.queue)).collect()
}

//! `vtq send --file`: every line of a file, or none.

use std::cell::Cell;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use vtq::{MessageId, Outgoing, SendOptions};

use super::lines::{Line, Reader};
use super::{Batch, Lines, conclude, expiring};
use crate::args::Global;
use crate::args::send::SendArgs;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, Progress};

pub(super) async fn run(
    global: &Global,
    output: Output,
    args: &SendArgs,
    path: &Path,
    options: SendOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let is_committing = Cell::new(false);
    let stopped = async {
        interrupt.requested(1).await;
        if is_committing.get() {
            // Only the server can say now whether the messages are in.
            std::future::pending::<()>().await;
        }
        output.remark("interrupted: nothing was sent");
        Ok(Exit::Interrupted)
    };
    let sent = async {
        let total = check(output, args, path).await?;
        let vtq = global.connect().await?;
        let options = expiring(&vtq, options, &args.options).await?;
        let queue = vtq.queue(&args.queue)?;
        // A connection of its own, without a limit: a large file takes its time, and must not be cut off half-way.
        let (mut client, _notifications) = vtq.dedicated().await?.spawn();
        let tx = client
            .transaction()
            .await
            .map_err(|error| cannot("begin", error.as_db_error().map(|e| e.message())))?;
        let lines = Lines::spawn(open(path)?, args.from_line);
        let sent = send(args, lines, output.progress("sent", total), async |messages| {
            queue.on(&tx).send_batch(messages, &options).await
        })
        .await;
        let sent = sent.with_context(|| format!("nothing of {} was sent", path.display()))?;
        is_committing.set(true);
        tx.commit().await.map_err(|error| cannot("commit", error.as_db_error().map(|e| e.message())))?;
        conclude(output, &queue, sent)
    };
    tokio::select! {
        answer = sent => answer,
        answer = stopped => answer,
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        bail!("cannot read {}: it is a folder", path.display());
    }
    Ok(file)
}

/// Looks at every line before anything is sent, and counts them. A pipe can be read only once: its lines are looked
/// at as they are sent, in the transaction that a bad one undoes.
async fn check(output: Output, args: &SendArgs, path: &Path) -> anyhow::Result<Option<u64>> {
    let file = open(path)?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let bar = output.progress("checked", None);
    let mut reader = Reader::new(file, args.from_line);
    let checked = tokio::task::spawn_blocking(move || {
        let mut number = 0;
        loop {
            match reader.next() {
                None => return Ok(number),
                Some(Line::Message { .. }) => number += 1,
                Some(Line::Bad(bad)) => return Err(anyhow!("{bad}")),
                Some(Line::Broken(error)) => return Err(anyhow::Error::new(error).context("cannot read on")),
            }
            bar.add(1);
        }
    });
    let number = checked.await.context("the check of the file broke off")?;
    Ok(Some(number.with_context(|| format!("nothing of {} was sent", path.display()))?))
}

/// Sends all lines, and returns how many there were.
async fn send(
    args: &SendArgs,
    mut lines: Lines,
    bar: Progress,
    send_batch: impl AsyncFn(&[Outgoing]) -> vtq::Result<Vec<MessageId>>,
) -> anyhow::Result<u64> {
    let mut sent = 0;
    let mut is_over = false;
    while !is_over {
        let mut batch = Batch::default();
        while !is_over && !batch.is_full(args.batch) {
            match lines.next().await {
                None => is_over = true,
                Some(Line::Message { number, message, bytes }) => batch.push(number, message, bytes),
                Some(Line::Bad(bad)) => bail!("{bad}"),
                Some(Line::Broken(error)) => return Err(anyhow::Error::new(error).context("cannot read on")),
            }
        }
        if batch.is_empty() {
            break;
        }
        if let Err(error) = send_batch(&batch.messages).await {
            return Err(match batch.blamed(&error) {
                Some(bad) => anyhow!("{bad}"),
                None => error.into(),
            });
        }
        sent += batch.len();
        bar.add(batch.len());
    }
    Ok(sent)
}

/// Of what the server answers, only the first sentence: the others may quote a row.
fn cannot(what: &str, answer: Option<&str>) -> anyhow::Error {
    anyhow!("cannot {what} the transaction: {}", answer.unwrap_or("the connection broke"))
}

//! `vtq send` from standard input: lines as they come, in batches that are each sent whole or not at all.

use std::io;
use std::time::Duration;

use anyhow::anyhow;
use tokio::time::{Instant, timeout_at};
use vtq::{ErrorKind, Queue, SendOptions, Vtq};

use super::lines::Line;
use super::{Batch, Lines, conclude, expiring};
use crate::args::Global;
use crate::args::send::SendArgs;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, Progress};

/// Input that rests for this long is sent as far as it is.
const PAUSE: Duration = Duration::from_millis(100);
/// Input that trickles on without a pause is sent at least this often.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

pub(super) async fn run(
    global: &Global,
    output: Output,
    args: &SendArgs,
    options: SendOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let vtq = global.connect().await?;
    let queue = vtq.queue(&args.queue)?;
    // A queue that is not there is better known before anybody starts to type.
    queue.options().await?;
    let mut stream = Stream {
        vtq,
        queue,
        lines: Lines::spawn(io::stdin(), args.from_line),
        sent: 0,
        next_line: args.from_line,
        bar: output.progress("sent", None),
    };
    loop {
        let filled = tokio::select! {
            filled = stream.fill(args.batch) => filled,
            () = interrupt.requested(1) => break,
        };
        let Filled { batch, end } = filled;
        if let Some(End::Bad(why)) = end {
            return Err(anyhow!("{why}; {}", stream.position()));
        }
        if !batch.is_empty() {
            stream.send(batch, &options, args).await?;
        }
        if end.is_some() || interrupt.is_requested() {
            break;
        }
    }
    let position = stream.position();
    let Stream { queue, sent, bar, .. } = stream;
    bar.finish();
    conclude(output, &queue, sent)?;
    if interrupt.is_requested() {
        output.remark(&format!("interrupted: {position}"));
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}

struct Stream {
    vtq: Vtq,
    queue: Queue,
    lines: Lines,
    sent: u64,
    /// The first line that has not been sent.
    next_line: u64,
    bar: Progress,
}

struct Filled {
    batch: Batch,
    end: Option<End>,
}

enum End {
    Input,
    Bad(String),
}

impl Stream {
    /// Collects a batch: until it is full, or the input pauses or ends.
    async fn fill(&mut self, most: u32) -> Filled {
        let mut batch = Batch::default();
        let mut latest = None;
        while !batch.is_full(most) {
            let line = match latest {
                None => self.lines.next().await,
                Some(latest) => {
                    match timeout_at(Instant::min(Instant::now() + PAUSE, latest), self.lines.next()).await {
                        Ok(line) => line,
                        Err(_) => return Filled { batch, end: None },
                    }
                }
            };
            let end = match line {
                Some(Line::Message { number, message, bytes }) => {
                    batch.push(number, message, bytes);
                    latest.get_or_insert_with(|| Instant::now() + LONGEST_WAIT);
                    continue;
                }
                Some(Line::Bad(bad)) => End::Bad(bad.to_string()),
                Some(Line::Broken(error)) => End::Bad(format!("cannot read standard input: {error}")),
                None => End::Input,
            };
            return Filled { batch, end: Some(end) };
        }
        Filled { batch, end: None }
    }

    async fn send(&mut self, batch: Batch, options: &SendOptions, args: &SendArgs) -> anyhow::Result<()> {
        let options = expiring(&self.vtq, options.clone(), &args.options).await?;
        if let Err(error) = self.queue.send_batch(&batch.messages, &options).await {
            if let Some(bad) = batch.blamed(&error) {
                return Err(anyhow!("{bad}; {}", self.position()));
            }
            let is_unsure = matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unavailable);
            let position = match (is_unsure, batch.last_line()) {
                (true, Some(last)) => format!(
                    "{} messages were sent, and lines {} to {last} may have been sent or not",
                    self.sent, self.next_line
                ),
                _ => self.position(),
            };
            return Err(anyhow::Error::new(error).context(position));
        }
        self.sent += batch.len();
        self.next_line = batch.last_line().map_or(self.next_line, |last| last + 1);
        self.bar.add(batch.len());
        Ok(())
    }

    /// How far it has come, and how to go on.
    fn position(&self) -> String {
        let line = self.next_line;
        match self.sent {
            0 if line == 1 => "nothing was sent".into(),
            0 => format!("nothing was sent: go on with --from-line {line}"),
            1 => {
                format!("1 message was sent, and nothing from line {line} on: go on with --from-line {line}")
            }
            sent => {
                format!(
                    "{sent} messages were sent, and nothing from line {line} on: go on with --from-line {line}"
                )
            }
        }
    }
}

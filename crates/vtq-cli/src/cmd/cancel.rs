//! `vtq cancel` and `vtq retry`: a person's verbs on live messages.

use serde_json::{Map, Value, json};
use vtq::{MessageId, Queue};

use crate::args::Global;
use crate::args::message::{CancelArgs, RetryArgs};
use crate::args::name;
use crate::exit::Exit;
use crate::output::Output;

pub(super) async fn cancel(global: &Global, output: Output, args: &CancelArgs) -> anyhow::Result<Exit> {
    let words = Words { done: "cancelled", not: "not there, so not cancelled" };
    each(global, output, &args.names.words, words, async |queue, id| queue.cancel(id).await).await
}

pub(super) async fn retry(global: &Global, output: Output, args: &RetryArgs) -> anyhow::Result<Exit> {
    let words = Words { done: "due now", not: "neither delayed nor retrying, so left as is" };
    each(global, output, &args.names.words, words, async |queue, id| queue.run_now(id).await).await
}

/// How a command says what it did, and what it did not do.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) done: &'static str,
    pub(super) not: &'static str,
}

/// Does something with each message that is named; those that are not there do not keep it from the others.
pub(super) async fn each(
    global: &Global,
    output: Output,
    names: &[String],
    words: Words,
    verb: impl AsyncFn(&Queue, MessageId) -> vtq::Result<bool>,
) -> anyhow::Result<Exit> {
    let (mut done, mut not) = (Vec::new(), Vec::new());
    let names = name::messages(names)?;
    let vtq = global.connect().await?;
    for (name, ids) in names {
        let queue = vtq.queue(&name)?;
        for id in ids {
            let is_done = verb(&queue, id).await?;
            (if is_done { &mut done } else { &mut not }).push(format!("{name}/{id}"));
        }
    }
    let document = Map::from_iter([
        (words.done.replace(' ', "_"), Value::from(done.clone())),
        ("unmatched".to_owned(), json!(not)),
    ]);
    if output.is_json() || !done.is_empty() {
        let lines: Vec<String> = done.iter().map(|name| format!("{name} {}", words.done)).collect();
        output.done(&lines.join("\n"), &document)?;
    }
    if not.is_empty() {
        return Ok(Exit::Done);
    }
    output.remark(&format!("{}: {}", words.not, not.join(", ")));
    Ok(Exit::Nothing)
}

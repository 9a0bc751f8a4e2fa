//! `vtq read` and `vtq peek`.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use vtq::{Message, ReadOptions};

use crate::args::Global;
use crate::args::message::{PeekArgs, ReadArgs};
use crate::exit::Exit;
use crate::output::{Output, millis, print};

/// A message, in JSON. What somebody sent stands there as it was sent, digit for digit.
#[derive(Serialize)]
struct Document<'a> {
    queue: &'a str,
    msg_id: i64,
    read_ct: i32,
    /// What settles it; absent from a peek, which leases nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
    attempt: i32,
    priority: i16,
    ready_at: DateTime<Utc>,
    enqueued_at: DateTime<Utc>,
    last_read_at: Option<DateTime<Utc>>,
    visible_at: DateTime<Utc>,
    timeout_ms: Option<u64>,
    headers: Option<&'a RawValue>,
    message: &'a RawValue,
}

pub(super) async fn read(global: &Global, output: Output, args: ReadArgs) -> anyhow::Result<Exit> {
    let queue = global.connect().await?.queue(&args.queue)?;
    let mut options = ReadOptions::new().qty(args.qty.into());
    if let Some(length) = args.vt {
        options = options.visibility_timeout(length);
    }
    let messages = queue.read(&options).await?;
    show(
        output,
        &messages,
        |message| Document { lease: Some(lease(message)), ..document(args.queue.as_str(), message) },
        lease,
    )
}

pub(super) async fn peek(global: &Global, output: Output, args: PeekArgs) -> anyhow::Result<Exit> {
    let queue = global.connect().await?.queue(&args.queue)?;
    let messages = queue.peek(args.qty.into()).await?;
    show(
        output,
        &messages,
        |message| document(args.queue.as_str(), message),
        |message| format!("{}/{}", args.queue, message.id()),
    )
}

fn show<'a>(
    output: Output,
    messages: &'a [Message],
    document: impl Fn(&'a Message) -> Document<'a>,
    name: impl Fn(&Message) -> String,
) -> anyhow::Result<Exit> {
    if output.is_json() {
        output.json(&messages.iter().map(document).collect::<Vec<_>>())?;
    } else {
        let lines = messages.iter().map(|message| format!("{}\t{}\n", name(message), message.body));
        print(&lines.collect::<String>())?;
    }
    Ok(if messages.is_empty() { Exit::Nothing } else { Exit::Done })
}

fn lease(message: &Message) -> String {
    format!("{}:{}", message.lease.id, message.lease.read_ct)
}

fn document<'a>(queue: &'a str, message: &'a Message) -> Document<'a> {
    Document {
        queue,
        msg_id: message.lease.id,
        read_ct: message.lease.read_ct,
        lease: None,
        attempt: message.attempt,
        priority: message.priority,
        ready_at: message.ready_at,
        enqueued_at: message.enqueued_at,
        last_read_at: message.last_read_at,
        visible_at: message.visible_at,
        timeout_ms: message.timeout.map(millis),
        headers: message.headers.as_deref(),
        message: &message.body,
    }
}

//! The commands that take leases: `vtq ack`, `fail`, `extend`, `defer`, `release`.

use serde_json::{Value, json};
use vtq::{Failure, Fate, Lease, MessageId, QueueName, Reason, Settled};

use crate::args::Global;
use crate::args::message::{AckArgs, DeferArgs, ExtendArgs, FailArgs, LeaseArgs, ReleaseArgs};
use crate::args::name;
use crate::exit::Exit;
use crate::output::{Output, instant};

pub(super) async fn ack(global: &Global, output: Output, args: AckArgs) -> anyhow::Result<Exit> {
    let mut account = Account::new("acked");
    let leases = name::leases(&args.leases.words)?;
    let vtq = global.connect().await?;
    for (queue, leases) in leases {
        let settled = vtq.queue(&queue)?.ack_batch(&leases).await?;
        account.enter_all(&queue, &leases, &settled);
    }
    account.close(output)
}

pub(super) async fn extend(global: &Global, output: Output, args: ExtendArgs) -> anyhow::Result<Exit> {
    let mut account = Account::new("extended");
    let leases = name::leases(&args.leases.words)?;
    let vtq = global.connect().await?;
    for (queue, leases) in leases {
        let held = vtq.queue(&queue)?.extend(&leases, args.vt).await?;
        account.enter_all(&queue, &leases, &held);
    }
    account.close(output)
}

pub(super) async fn release(global: &Global, output: Output, args: ReleaseArgs) -> anyhow::Result<Exit> {
    let mut account = Account::new("released");
    let leases = name::leases(&args.leases.words)?;
    let vtq = global.connect().await?;
    for (queue, leases) in leases {
        let released = vtq.queue(&queue)?.release(&leases, args.reason.as_deref()).await?;
        account.enter_all(&queue, &leases, &released);
    }
    account.close(output)
}

pub(super) async fn fail(global: &Global, output: Output, args: FailArgs) -> anyhow::Result<Exit> {
    let failure = failure(&args);
    each(global, output, &args.leases, "retrying", async |queue, lease| {
        if !args.permanent {
            return queue.fail(lease, &failure).await;
        }
        let settled = queue.dead_letter(lease, Reason::PermanentFailure, Some(&failure)).await?;
        Ok(if settled == Settled::Done { Fate::Dead } else { Fate::LeaseLost })
    })
    .await
}

pub(super) async fn defer(global: &Global, output: Output, args: DeferArgs) -> anyhow::Result<Exit> {
    each(global, output, &args.leases, "deferred", async |queue, lease| {
        queue.defer(lease, args.delay, args.reason.as_deref()).await
    })
    .await
}

fn failure(args: &FailArgs) -> Failure {
    let mut failure = Failure::new(args.error.as_deref().unwrap_or("failed by vtq fail"));
    if let Some(class) = &args.class {
        failure = failure.class(class);
    }
    match args.retry_after {
        Some(wait) => failure.retry_after(wait),
        None => failure,
    }
}

/// Settles one lease after the other, for the verbs that answer what became of the message.
async fn each(
    global: &Global,
    output: Output,
    args: &LeaseArgs,
    again: &'static str,
    settle: impl AsyncFn(&vtq::Queue, Lease) -> vtq::Result<Fate>,
) -> anyhow::Result<Exit> {
    let mut account = Account::new(again);
    let leases = name::leases(&args.words)?;
    let vtq = global.connect().await?;
    for (name, leases) in leases {
        let queue = vtq.queue(&name)?;
        for lease in leases {
            account.enter(&name, lease, settle(&queue, lease).await?);
        }
    }
    account.close(output)
}

/// What became of the leases of a command.
struct Account {
    /// What a message is called that went the usual way.
    usual: &'static str,
    lines: Vec<String>,
    documents: Vec<Value>,
    lost: Vec<String>,
}

impl Account {
    fn new(usual: &'static str) -> Self {
        Self { usual, lines: Vec::new(), documents: Vec::new(), lost: Vec::new() }
    }

    fn enter_all(&mut self, queue: &QueueName, leases: &[Lease], settled: &[MessageId]) {
        for lease in leases {
            // The answer names messages. Of two leases on one message only the later can have been held.
            let is_late = leases.iter().any(|other| other.id == lease.id && other.read_ct > lease.read_ct);
            match settled.contains(&lease.id) && !is_late {
                true => self.note(queue, *lease, self.usual, true, json!({})),
                false => self.note(queue, *lease, "stale", false, json!({})),
            }
        }
    }

    fn enter(&mut self, queue: &QueueName, lease: Lease, fate: Fate) {
        match fate {
            Fate::Again { visible_at } => {
                self.note(queue, lease, self.usual, true, json!({"visible_at": visible_at}));
                if let Some(line) = self.lines.last_mut() {
                    line.push_str(&format!(", due again at {}", instant(visible_at)));
                }
            }
            Fate::Dead => self.note(queue, lease, "dead", true, json!({})),
            Fate::Superseded => self.note(queue, lease, "superseded", true, json!({})),
            Fate::LeaseLost => self.note(queue, lease, "stale", false, json!({})),
        }
    }

    fn note(&mut self, queue: &QueueName, lease: Lease, outcome: &str, is_held: bool, mut more: Value) {
        let Lease { id, read_ct } = lease;
        if is_held {
            self.lines.push(format!("{queue}/{id} {outcome}"));
        } else {
            self.lost.push(format!("{queue}/{id}:{read_ct}"));
        }
        more["queue"] = json!(queue.as_str());
        more["msg_id"] = json!(id);
        more["read_ct"] = json!(read_ct);
        more["outcome"] = json!(outcome);
        self.documents.push(more);
    }

    fn close(self, output: Output) -> anyhow::Result<Exit> {
        if output.is_json() || !self.lines.is_empty() {
            output.done(&self.lines.join("\n"), &self.documents)?;
        }
        if self.lost.is_empty() {
            return Ok(Exit::Done);
        }
        let (leases, was) = if self.lost.len() == 1 { ("lease", "was") } else { ("leases", "were") };
        output.remark(&format!(
            "stale {leases}, nothing changed: {} {was} delivered again, settled or cancelled",
            self.lost.join(", ")
        ));
        Ok(Exit::Nothing)
    }
}

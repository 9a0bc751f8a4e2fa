//! The queue of a run: made for it, filled, and dropped. No message of anybody else's is ever touched.

use std::time::Duration;

use anyhow::{Context, bail};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleQueryMessage};
use vtq::{Created, ErrorKind, OnAck, Queue, QueueName, QueueOptions, SendOptions, Vtq};

use super::payload::{MARK, Writer};
use crate::args::queue;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// By this comment on its table a queue is known as one that a bench has made.
const COMMENT: &str = "Made by vtq bench, which may drop it; messages of others do not belong here.";

/// The most that one statement puts in before the clock starts.
const FILL: u64 = 2000;
const FILL_BYTES: u64 = 8 * 1024 * 1024;
const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// A queue that was made for a run.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) queue: Queue,
    control: Client,
    /// Its transaction holds the lock that keeps other benches away; it has no snapshot, so it is in nobody's way.
    _guard: Client,
}

/// What is put in before the clock starts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fill {
    /// Due at once.
    Backlog(u64),
    /// Due in a day.
    Delayed(u64),
}

impl Place {
    /// Makes the queue. One that is there is refused, unless a bench has made it and all in it is a bench's.
    pub(super) async fn make(
        vtq: &Vtq,
        name: &QueueName,
        on_ack: Option<queue::OnAck>,
    ) -> anyhow::Result<Self> {
        let queue = vtq.queue(name)?;
        // Before anything else: it also says whether vtq is installed.
        let is_there = match queue.options().await {
            Err(error) if error.kind() == ErrorKind::QueueNotFound => false,
            answer => answer.map(|_| true)?,
        };
        let guard = lock(vtq, name).await?;
        let place = Self { queue, control: vtq.dedicated().await?.spawn().0, _guard: guard };
        if is_there {
            if !place.is_of_a_bench().await? {
                bail!(
                    "queue \"{name}\" exists and no bench has made it: a bench uses none of yours; give another \
                     name, or leave --queue out"
                );
            }
            place.remove().await?;
        }
        if place.queue.create(&options(on_ack)).await? == Created::Existing {
            bail!("queue \"{name}\" was made by somebody else at this very moment: give another name");
        }
        let mark = format!("COMMENT ON TABLE vtq.\"{name}\" IS '{COMMENT}'");
        place.control.batch_execute(&mark).await.with_context(|| format!("mark queue \"{name}\""))?;
        Ok(place)
    }

    /// Puts in messages before the clock starts, or as many as there is time for until the user has had enough.
    pub(super) async fn fill(
        &self,
        mut writer: Writer,
        fill: Fill,
        output: Output,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let (what, number, options) = match fill {
            Fill::Backlog(number) => ("put in: ready", number, SendOptions::new()),
            Fill::Delayed(number) => ("put in: delayed", number, SendOptions::new().delay(A_DAY)),
        };
        if number == 0 {
            return Ok(());
        }
        let bar = output.progress(what, Some(number));
        let most = (FILL_BYTES / writer.bytes()).clamp(1, FILL);
        let mut left = number;
        while left > 0 && !interrupt.is_requested() {
            let some = left.min(most);
            let messages = writer.batch(some as usize, None)?;
            self.queue.send_batch(&messages, &options).await?;
            bar.add(some);
            left -= some;
        }
        bar.finish();
        Ok(())
    }

    /// Drops the queue, unless there is a message in it that no bench has sent.
    pub(super) async fn remove(&self) -> anyhow::Result<()> {
        let name = self.queue.name();
        // Under a lock, so that nobody sends between the look and the drop.
        let look = format!(
            "BEGIN; LOCK TABLE vtq.\"{name}\", vtq.\"{name}_dlq\" IN ACCESS EXCLUSIVE MODE; \
             SELECT count(*) FROM (
                 SELECT m.message FROM vtq.\"{name}\" AS m UNION ALL SELECT d.message FROM vtq.\"{name}_dlq\" AS d
             ) AS a WHERE (a.message ? '{MARK}') IS NOT TRUE"
        );
        let what = || format!("drop queue \"{name}\"");
        let answer = self.control.simple_query(&look).await.with_context(what)?;
        let foreign = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        if foreign != Some("0") {
            self.control.batch_execute("ROLLBACK").await.with_context(what)?;
            let foreign = foreign.unwrap_or("some");
            bail!("queue \"{name}\" is left as it is: {foreign} of its messages were sent by no bench");
        }
        let drop = format!("SELECT vtq.drop_queue('{name}'); COMMIT");
        self.control.batch_execute(&drop).await.with_context(what)
    }

    async fn is_of_a_bench(&self) -> anyhow::Result<bool> {
        let sql =
            "SELECT obj_description(to_regclass(format('vtq.%I', $1)), 'pg_class') IS NOT DISTINCT FROM $2";
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&self.queue.name().as_str(), Type::TEXT), (&COMMENT, Type::TEXT)];
        let rows = self.control.query_typed(sql, &params).await.context("ask who has made the queue")?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }
}

fn options(on_ack: Option<queue::OnAck>) -> QueueOptions {
    match on_ack {
        None => QueueOptions::new(),
        Some(queue::OnAck::Archive) => QueueOptions::new().on_ack(OnAck::Archive),
        Some(queue::OnAck::Delete) => QueueOptions::new().on_ack(OnAck::Delete),
    }
}

/// Keeps other benches from the queue as long as the connection lives.
async fn lock(vtq: &Vtq, name: &QueueName) -> anyhow::Result<Client> {
    let (client, _notifications) = vtq.dedicated().await?.spawn();
    // In a transaction rather than in the session, which a pooler would hand on.
    let sql = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0; \
         SELECT pg_try_advisory_xact_lock(hashtextextended('vtq.bench.{name}', 0))"
    );
    let answer = client.simple_query(&sql).await.context("lock the queue of the bench")?;
    let is_locked = answer
        .iter()
        .any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t")));
    if !is_locked {
        bail!("queue \"{name}\" is in use by another bench");
    }
    Ok(client)
}

//! vtq: by its SQL functions in the loop that PGMQ is called in, and by its worker.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use tokio_postgres::{Client, Statement};
use vtq::{Capsule, ConnectOptions, Outgoing, QueueOptions, SendOptions, Vtq, Worker};

use crate::backlog::Backlog;
use crate::body::Body;
use crate::client_loop::{self, Taken, Verbs};
use crate::peer::{Consume, OnAck, QUEUE};

/// As the library's worker does: a claim that a crash undoes is only delivered again, so its commit does not wait for
/// the disk. Local to this statement's own transaction.
const CLAIM: &str = "\
SELECT r.msg_id, r.read_ct, r.attempt, r.ready_at, r.enqueued_at, r.last_read_at, r.vt, r.headers, r.message, \
r.priority, r.timeout, r.is_suspect \
FROM (SELECT set_config('synchronous_commit', 'off', true) AS set) AS s \
CROSS JOIN LATERAL vtq.read(CASE s.set WHEN 'off' THEN 'bench' END, '30 s', $1, $2, $3) AS r";

/// Between two reads from the front of the line: the worker's numbers.
const LEAST_BETWEEN_FULL: Duration = Duration::from_millis(20);
const MOST_BETWEEN_FULL: Duration = Duration::from_secs(10);

/// The statements of a poller, and what it remembers of the line.
#[derive(Debug)]
pub(crate) struct Sql {
    client: Client,
    claim: Statement,
    ack: Statement,
    floor: Option<(DateTime<Utc>, i64)>,
    full_due: Instant,
}

pub(super) async fn library(url: &str) -> Result<vtq::Queue> {
    let vtq = ConnectOptions::from_url(url)?.connect().await?;
    Ok(vtq.queue(QUEUE)?)
}

pub(super) async fn install(url: &str) -> Result<()> {
    let vtq = ConnectOptions::from_url(url)?.connect().await?;
    vtq.migrate().await?;
    vtq.queue(QUEUE)?.create(&QueueOptions::new()).await?;
    Ok(())
}

pub(super) async fn set_on_ack(url: &str, on_ack: OnAck) -> Result<()> {
    let on_ack = match on_ack {
        OnAck::Delete => vtq::OnAck::Delete,
        OnAck::Archive => vtq::OnAck::Archive,
    };
    library(url).await?.set(&QueueOptions::new().on_ack(on_ack)).await?;
    Ok(())
}

pub(super) async fn send(queue: &vtq::Queue, bodies: Vec<Body>) -> Result<()> {
    let messages: Vec<Outgoing> = bodies.iter().map(Outgoing::new).collect::<vtq::Result<_>>()?;
    queue.send_batch(&messages, &SendOptions::new()).await?;
    Ok(())
}

/// Runs the library's worker.
pub(super) async fn work(consume: Consume) -> Result<()> {
    let vtq: Vtq = ConnectOptions::from_url(&consume.url)?.connect().await?;
    let Consume { handler, shape, stop, .. } = consume;
    let handle = vtq::json(move |body: Body, _| {
        let handler = handler.clone();
        async move {
            handler.handle(body).await;
            Ok::<(), vtq::Failure>(())
        }
    });
    let worker = Worker::builder(&vtq)
        .capsule(Capsule::new([QUEUE], handle).concurrency(shape.concurrency))
        .build()?;
    let stopped = worker.run(stop.cancelled_owned()).await?;
    anyhow::ensure!(
        stopped.lost == 0 && stopped.dead == 0 && stopped.retried == 0,
        "the worker lost {}, buried {} and retried {} messages",
        stopped.lost,
        stopped.dead,
        stopped.retried
    );
    Ok(())
}

/// Statements that make a backlog.
pub(super) fn fill(backlog: Backlog) -> Option<&'static [&'static str]> {
    match backlog {
        Backlog::Nothing => Some(&[]),
        Backlog::Ready => Some(&["SELECT count(*) FROM vtq.send_batch('bench', ARRAY( \
            SELECT jsonb_build_object('at', 0, 'n', n, 'pad', repeat('x', 165)) FROM generate_series(1, :count) AS n))"]),
        Backlog::Delayed => Some(&["SELECT count(*) FROM vtq.send_batch('bench', ARRAY( \
            SELECT jsonb_build_object('at', 0, 'n', n, 'pad', repeat('x', 165)) FROM generate_series(1, :count) AS n), \
            delay => '1 day')"]),
        Backlog::FailedOnce => Some(&[
            "SELECT count(*) FROM vtq.send_batch('bench', ARRAY( \
            SELECT jsonb_build_object('at', 0, 'n', n, 'pad', repeat('x', 165)) FROM generate_series(1, :count) AS n))",
            "SELECT count(*) FROM vtq.read('bench', '30 s', :count) AS m, \
            LATERAL vtq.fail('bench', m.msg_id, m.read_ct, '\"declined\"', '1 day')",
        ]),
    }
}

impl Verbs for Sql {
    const SEND: &'static str = "SELECT vtq.send_batch('bench', $1)";

    async fn prepare(client: Client, _on_ack: OnAck, _is_patient: bool) -> Result<Self> {
        let claim = client.prepare(CLAIM).await?;
        let ack = client.prepare("SELECT vtq.ack($1, $2, $3)").await?;
        Ok(Self { client, claim, ack, floor: None, full_due: Instant::now() })
    }

    async fn read(&mut self, qty: i32) -> Result<Vec<Taken>> {
        let started = Instant::now();
        let is_full = self.full_due <= started;
        let floor = self.floor.filter(|_| !is_full);
        let after_ready_at = floor.map(|(ready_at, _)| vec![ready_at]);
        let after_msg_id = floor.map(|(_, msg_id)| vec![msg_id]);
        let rows = self.client.query(&self.claim, &[&qty, &after_ready_at, &after_msg_id]).await?;
        if is_full {
            let wait = (started.elapsed() * 100).clamp(LEAST_BETWEEN_FULL, MOST_BETWEEN_FULL);
            self.full_due = Instant::now() + wait;
        }
        for row in &rows {
            self.floor = self.floor.max(Some((row.try_get("ready_at")?, row.try_get("msg_id")?)));
        }
        rows.iter().map(|row| client_loop::taken(row, "msg_id", Some("read_ct"))).collect()
    }

    async fn settle(&mut self, taken: &[(i64, i32)]) -> Result<()> {
        let (ids, read_cts): (Vec<i64>, Vec<i32>) = taken.iter().copied().unzip();
        let settled = self.client.query(&self.ack, &[&QUEUE, &ids, &read_cts]).await?;
        anyhow::ensure!(settled.len() == ids.len(), "only {} of {} were settled", settled.len(), ids.len());
        Ok(())
    }

    async fn upkeep(&mut self) -> Result<()> {
        self.client
            .execute("SELECT vtq.maintain($1)", &[&QUEUE])
            .await
            .context("cannot maintain the queue")?;
        Ok(())
    }
}

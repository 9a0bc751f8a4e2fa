//! PGMQ, by the SQL that crate `pgmq` ships.
//!
//! As its documentation has it (docs.rs/pgmq, "Reading messages" and "Archive or Delete a message"): batches are sent by
//! `send_batch`, read by `read` with a quantity, and settled by the `delete` and `archive` that take an array. Consumers
//! with little to do use `read_with_poll`, so that they do not poll over the network.

use anyhow::Result;
use tokio_postgres::{Client, Statement};

use crate::backlog::Backlog;
use crate::client_loop::{self, Taken, Verbs};
use crate::peer::{OnAck, QUEUE};

/// Seconds; the same as vtq's.
const VISIBILITY_TIMEOUT: i32 = 30;

const READ: &str = "\
SELECT msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers FROM pgmq.read($1, $2, $3)";
/// The long poll, with its default times: 5 s in all, every 100 ms.
const READ_WITH_POLL: &str = "\
SELECT msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers FROM pgmq.read_with_poll($1, $2, $3)";

/// The statements of a poller.
#[derive(Debug)]
pub(crate) struct Sql {
    client: Client,
    read: Statement,
    settle: Statement,
}

#[cfg(not(feature = "peers"))]
pub(super) use super::absent::install;

#[cfg(feature = "peers")]
pub(super) async fn install(url: &str) -> Result<()> {
    let pool = sqlx::PgPool::connect(url).await?;
    let queue = pgmq::PGMQueueExt::new_with_pool(pool.clone()).await;
    queue.install_sql_from_embedded().await?;
    queue.create(QUEUE).await?;
    pool.close().await;
    Ok(())
}

/// Statements that make a backlog. PGMQ has no failure of its own: `set_vt` is how a consumer puts a message off.
pub(super) fn fill(backlog: Backlog) -> Option<&'static [&'static str]> {
    match backlog {
        Backlog::Nothing => Some(&[]),
        Backlog::Ready => Some(&["SELECT count(*) FROM pgmq.send_batch('bench', ARRAY( \
            SELECT jsonb_build_object('at', 0, 'n', n, 'pad', repeat('x', 165)) FROM generate_series(1, :count) AS n))"]),
        Backlog::Delayed => Some(&["SELECT count(*) FROM pgmq.send_batch('bench', ARRAY( \
            SELECT jsonb_build_object('at', 0, 'n', n, 'pad', repeat('x', 165)) FROM generate_series(1, :count) AS n), \
            86400)"]),
        Backlog::FailedOnce => Some(&[
            "SELECT count(*) FROM pgmq.send_batch('bench', ARRAY( \
            SELECT jsonb_build_object('at', 0, 'n', n, 'pad', repeat('x', 165)) FROM generate_series(1, :count) AS n))",
            // What a read and a set_vt leave behind. Its read walks past all that were filled in before, which would
            // take hours.
            "UPDATE pgmq.q_bench SET read_ct = 1, vt = clock_timestamp() + interval '1 day' WHERE read_ct = 0",
        ]),
    }
}

impl Verbs for Sql {
    const SEND: &'static str = "SELECT pgmq.send_batch('bench', $1::jsonb[])";

    async fn prepare(client: Client, on_ack: OnAck, is_patient: bool) -> Result<Self> {
        let read = client.prepare(if is_patient { READ_WITH_POLL } else { READ }).await?;
        let settle = match on_ack {
            OnAck::Delete => "SELECT pgmq.delete($1, $2::bigint[])",
            OnAck::Archive => "SELECT pgmq.archive($1, $2::bigint[])",
        };
        let settle = client.prepare(settle).await?;
        Ok(Self { client, read, settle })
    }

    async fn read(&mut self, qty: i32) -> Result<Vec<Taken>> {
        let rows = self.client.query(&self.read, &[&QUEUE, &VISIBILITY_TIMEOUT, &qty]).await?;
        rows.iter().map(|row| client_loop::taken(row, "msg_id", Some("read_ct"))).collect()
    }

    async fn settle(&mut self, taken: &[(i64, i32)]) -> Result<()> {
        let ids: Vec<i64> = taken.iter().map(|(id, _)| *id).collect();
        let settled = self.client.query(&self.settle, &[&QUEUE, &ids]).await?;
        anyhow::ensure!(settled.len() == ids.len(), "only {} of {} were settled", settled.len(), ids.len());
        Ok(())
    }
}

//! Queues with many messages in them, made once and kept for all runs.

use anyhow::{Context, Result};
use tokio_postgres::Client;

use crate::cluster::{Bench, connect};
use crate::peer::Peer;

/// What lies in the queue beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Backlog {
    Nothing,
    /// Sent with a delay of a day.
    Delayed,
    /// Read, and failed with a day to wait.
    FailedOnce,
    /// Sent, and due.
    Ready,
}

/// The most messages in one statement.
const BATCH: u32 = 10_000;

impl Backlog {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Delayed => "delayed",
            Self::FailedOnce => "failed once",
            Self::Ready => "ready",
        }
    }

    /// Returns the URL of a database whose queue holds `count` messages of this kind; made at the first call, and the
    /// same one ever after.
    pub(crate) async fn database(self, bench: &Bench, peer: Peer, count: u32) -> Result<String> {
        let name = format!("kept_{}_{}", peer.schema(), self.name().replace(' ', "_"));
        let (url, is_new) = bench.kept(peer, &name).await?;
        if is_new && self != Self::Nothing {
            let client = connect(&url).await?;
            self.fill(&client, peer, count)
                .await
                .with_context(|| format!("cannot fill a queue of {}", peer.name()))?;
            // What autovacuum does to any table of that size sooner or later, and here not in the middle.
            client.batch_execute("VACUUM ANALYZE").await?;
            bench.admin.batch_execute("CHECKPOINT").await?;
        }
        Ok(url)
    }

    async fn fill(self, client: &Client, peer: Peer, count: u32) -> Result<()> {
        // A bulk load: nobody waits for each of its commits.
        client.batch_execute("SET synchronous_commit = off").await?;
        let statements = peer.fill(self).with_context(|| format!("{} has no such backlog", peer.name()))?;
        let mut left = count;
        while left > 0 {
            let batch = left.min(BATCH);
            for statement in statements {
                client.batch_execute(&statement.replace(":count", &batch.to_string())).await?;
            }
            left -= batch;
        }
        Ok(())
    }
}

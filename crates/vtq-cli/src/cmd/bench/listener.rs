//! Counts the notifications of a queue, by hearing them itself.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;
use tokio_postgres::Client;
use vtq::{QueueName, Vtq};

use super::tally;

/// How long the first notification, which it sends itself, may take.
const PROOF_LIMIT: Duration = Duration::from_secs(2);

/// A connection that listens.
#[derive(Debug)]
pub(super) struct Listener {
    heard: Arc<AtomicU64>,
    _client: Client,
}

impl Listener {
    /// Begins to listen; `None` where nothing is heard: a transaction pooler accepts LISTEN, and then is silent.
    ///
    /// The proof comes from another connection: what a session tells itself passes any pooler.
    pub(super) async fn open(vtq: &Vtq, queue: &QueueName, other: &Client) -> anyhow::Result<Option<Self>> {
        let (client, mut notifications) = vtq.dedicated().await?.spawn();
        let what = "listen to the queue of the bench";
        client.batch_execute(&format!("LISTEN \"vtq_{queue}\"")).await.context(what)?;
        other.batch_execute(&format!("NOTIFY \"vtq_{queue}\"")).await.context(what)?;
        if !matches!(timeout(PROOF_LIMIT, notifications.recv()).await, Ok(Some(_))) {
            return Ok(None);
        }
        let heard = Arc::new(AtomicU64::new(0));
        let count = heard.clone();
        tokio::spawn(async move {
            while notifications.recv().await.is_some() {
                tally::add(&count);
            }
        });
        Ok(Some(Self { heard, _client: client }))
    }

    /// How many were heard so far.
    pub(super) fn heard(&self) -> u64 {
        tally::read(&self.heard)
    }
}

//! Counts the notifications on vtq's channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// Listens until it is dropped.
pub(crate) struct Listener {
    heard: Arc<AtomicU64>,
    /// The connection ends with it.
    _client: Client,
}

impl Listener {
    pub(crate) async fn start(url: &str) -> Result<Self> {
        let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.context("cannot listen")?;
        let heard = Arc::new(AtomicU64::new(0));
        let counter = heard.clone();
        tokio::spawn(async move {
            let mut messages = std::pin::pin!(poll_fn(move |context| connection.poll_message(context)));
            while let Some(Ok(message)) = messages.next().await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        client.batch_execute("LISTEN vtq_bench").await?;
        Ok(Self { heard, _client: client })
    }

    /// How many notifications came so far.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }
}

//! awa, by its client.
//!
//! Set as its own benchmark of the default storage engine is (`tests/benchmark_test.rs` in its package): no deadline for
//! each job, which takes the short path for claims, a poll every 50 ms, the default claim batch of 512. Producers use
//! `enqueue_params_copy`, which its documentation prefers for many jobs.

use std::time::Duration;

use anyhow::Result;
use awa::model::insert::params_with;
use awa::{Client, InsertOpts, JobArgs, JobResult, QueueConfig, QueueStorage, QueueStorageConfig};
use sqlx_08::postgres::{PgPool, PgPoolOptions};

use crate::body::Body;
use crate::peer::{Consume, POOL, QUEUE};

const SHUTDOWN: Duration = Duration::from_secs(10);

impl JobArgs for Body {
    fn kind() -> &'static str {
        "bench"
    }
}

/// A producer.
pub(crate) struct Sender {
    pool: PgPool,
    storage: QueueStorage,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sender")
    }
}

impl Sender {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let pool = pool(url, 1).await?;
        Ok(Self { pool, storage: QueueStorage::new(QueueStorageConfig::default())? })
    }

    pub(super) async fn send(&self, bodies: Vec<Body>) -> Result<()> {
        let options = InsertOpts { queue: QUEUE.into(), ..InsertOpts::default() };
        let jobs =
            bodies.iter().map(|body| params_with(body, options.clone())).collect::<Result<Vec<_>, _>>()?;
        if jobs.len() == 1 {
            self.storage.enqueue_params_batch(&self.pool, &jobs).await?;
        } else {
            self.storage.enqueue_params_copy(&self.pool, &jobs).await?;
        }
        Ok(())
    }
}

async fn pool(url: &str, connections: u32) -> Result<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(url).await?)
}

pub(super) async fn install(url: &str) -> Result<()> {
    let pool = pool(url, POOL).await?;
    awa::migrations::run(&pool).await?;
    // A new installation chooses its storage when the first client starts.
    let client = Client::builder(pool.clone())
        .queue(QUEUE, QueueConfig::default())
        .register::<Body, _, _>(|_, _| async { Ok(JobResult::Completed) })
        .build()?;
    client.start().await?;
    client.shutdown(SHUTDOWN).await;
    pool.close().await;
    Ok(())
}

/// Runs its client.
pub(super) async fn work(consume: Consume) -> Result<()> {
    let pool = pool(&consume.url, POOL).await?;
    let Consume { handler, shape, stop, .. } = consume;
    let queue = QueueConfig {
        max_workers: u32::try_from(shape.concurrency)?,
        poll_interval: Duration::from_millis(50),
        deadline_duration: Duration::ZERO,
        ..QueueConfig::default()
    };
    let client = Client::builder(pool.clone())
        .queue(QUEUE, queue)
        .register::<Body, _, _>(move |body: Body, _| {
            let handler = handler.clone();
            async move {
                handler.handle(body).await;
                Ok(JobResult::Completed)
            }
        })
        .build()?;
    client.start().await?;
    stop.cancelled().await;
    client.shutdown(SHUTDOWN).await;
    pool.close().await;
    Ok(())
}

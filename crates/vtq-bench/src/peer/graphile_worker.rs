//! graphile_worker, by its worker.
//!
//! As its guide has it for many small jobs (the pages "Local Queue" and "Worker Options" in its package): jobs are
//! fetched in batches by a local queue, and completions are batched for 1 to 5 ms; jobs are sent by `add_jobs`.

use std::time::Duration;

use anyhow::{Context, Result};
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, WorkerContext, WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgPool, PgPoolOptions};

use crate::body::Body;
use crate::peer::{Consume, POOL};
use crate::tally::Handler;

const COMPLETION_DELAY: Duration = Duration::from_millis(2);
/// The default of its local queue.
const LEAST_FETCHED: usize = 100;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Job(Body);

impl TaskHandler for Job {
    const IDENTIFIER: &'static str = "bench";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        let handler = context.get_ext::<Handler>().ok_or("no handler")?;
        handler.handle(self.0).await;
        Ok::<(), &str>(())
    }
}

/// A producer.
pub(crate) struct Sender {
    utils: WorkerUtils,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sender")
    }
}

impl Sender {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let worker = WorkerOptions::default().pg_pool(pool(url).await?).define_job::<Job>().init().await?;
        Ok(Self { utils: worker.create_utils() })
    }

    pub(super) async fn send(&self, bodies: Vec<Body>) -> Result<()> {
        let spec = JobSpec::default();
        let jobs: Vec<(Job, &JobSpec)> = bodies.into_iter().map(|body| (Job(body), &spec)).collect();
        self.utils.add_jobs(&jobs).await?;
        Ok(())
    }
}

async fn pool(url: &str) -> Result<PgPool> {
    PgPoolOptions::new().max_connections(POOL).connect(url).await.context("cannot connect")
}

pub(super) async fn install(url: &str) -> Result<()> {
    let pool = pool(url).await?;
    // It migrates when it is made.
    WorkerOptions::default().pg_pool(pool.clone()).define_job::<Job>().init().await?;
    pool.close().await;
    Ok(())
}

/// Runs its worker.
pub(super) async fn work(consume: Consume) -> Result<()> {
    let pool = pool(&consume.url).await?;
    let Consume { handler, shape, stop, .. } = consume;
    let local_queue = LocalQueueConfig::default().with_size(shape.concurrency.max(LEAST_FETCHED));
    let worker = WorkerOptions::default()
        .pg_pool(pool.clone())
        .concurrency(shape.concurrency)
        .define_job::<Job>()
        .add_extension(handler)
        .local_queue(local_queue)
        .complete_job_batch_delay(COMPLETION_DELAY)
        .listen_os_shutdown_signals(false)
        .shutdown_signal(stop.cancelled_owned())
        .init()
        .await?;
    worker.run().await?;
    pool.close().await;
    Ok(())
}

//! sqlxmq, by its job runner.
//!
//! Its documentation (docs.rs/sqlxmq, `JobRunnerOptions::set_concurrency`): jobs are polled in batches as big as the
//! difference between the least and the most concurrency, and bigger ones are more efficient. `mq_insert` takes an
//! array; the library's `JobBuilder` sends one job at a time.

use anyhow::{Context, Result, ensure};
use sqlx_08::postgres::{PgPool, PgPoolOptions};
use sqlxmq::{CurrentJob, JobRunnerOptions};
use tokio_postgres::types::Json;
use tokio_postgres::{Client, Statement};

use crate::body::Body;
use crate::cluster::connect;
use crate::peer::{Consume, POOL};

/// The migrations that its package ships.
const MIGRATIONS: &str = include_str!(concat!(env!("OUT_DIR"), "/sqlxmq.sql"));

/// The defaults of its `JobBuilder`, for many jobs in one call.
const SEND: &str = "\
SELECT mq_insert(array_agg(ROW(gen_random_uuid(), interval '0', 4, interval '1 s', 'bench', '', NULL, false, \
'bench', m::text, NULL)::mq_new_t)) FROM unnest($1::jsonb[]) AS m";

/// A producer.
pub(crate) struct Sender {
    client: Client,
    send: Statement,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sender")
    }
}

impl Sender {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        let send = client.prepare(SEND).await?;
        Ok(Self { client, send })
    }

    pub(super) async fn send(&self, bodies: Vec<Body>) -> Result<()> {
        let bodies: Vec<Json<Body>> = bodies.into_iter().map(Json).collect();
        self.client.query(&self.send, &[&bodies]).await?;
        Ok(())
    }
}

pub(super) async fn install(url: &str) -> Result<()> {
    let client = connect(url).await?;
    let has_extension = client
        .query_opt("SELECT FROM pg_available_extensions WHERE name = 'uuid-ossp'", &[])
        .await?
        .is_some();
    ensure!(
        has_extension,
        "sqlxmq needs the extension uuid-ossp, which this PostgreSQL does not have: leave it out with --peers"
    );
    client.batch_execute(MIGRATIONS).await.context("its migrations fail")
}

/// Runs its runner.
pub(super) async fn work(consume: Consume) -> Result<()> {
    let pool: PgPool = PgPoolOptions::new().max_connections(POOL).connect(&consume.url).await?;
    let Consume { handler, shape, stop, .. } = consume;
    let failed = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let failures = failed.clone();
    let end = stop.clone();
    let mut runner = JobRunnerOptions::new(&pool, move |mut job: CurrentJob| {
        let (handler, failures, end) = (handler.clone(), failures.clone(), end.clone());
        tokio::spawn(async move {
            let done = async {
                let body: Body = job.json()?.context("a job without a payload")?;
                handler.handle(body).await;
                anyhow::Ok(job.complete().await?)
            };
            if let Err(error) = done.await
                && !end.is_cancelled()
            {
                let _ = failures.set(format!("{error:#}"));
            }
        });
    });
    runner.set_concurrency(shape.concurrency.div_ceil(2), shape.concurrency).set_channel_names(&["bench"]);
    let mut running = runner.run().await?;
    stop.cancelled().await;
    running.stop().await;
    running.wait_jobs_finish(std::time::Duration::from_secs(10)).await;
    pool.close().await;
    ensure!(failed.get().is_none(), "a job failed: {}", failed.get().map_or("", String::as_str));
    Ok(())
}

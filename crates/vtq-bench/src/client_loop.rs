//! The loop that drives a queue whose interface is SQL: the same for vtq, PGMQ and the bare DELETE.
//!
//! Each poller has a connection of its own, with prepared statements, and in turn reads a batch, handles it and settles
//! it in one statement.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::future::join_all;
use tokio::task::JoinSet;
use tokio_postgres::types::Json;
use tokio_postgres::{Client, Row, Statement};

use crate::body::Body;
use crate::cluster::connect;
use crate::peer::{Consume, OnAck};

/// How long a poller waits after it found nothing: the first wait of vtq's worker.
const IDLE: Duration = Duration::from_millis(10);
/// How often the first poller does what the queue wants done now and then; about what vtq's worker does.
const UPKEEP: Duration = Duration::from_secs(15);

/// A message that was read.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) id: i64,
    /// What beside the id makes a lease, where there is such a thing.
    pub(crate) read_ct: i32,
    pub(crate) body: Body,
}

/// The SQL of a queue.
pub(crate) trait Verbs: Send + Sync + Sized + 'static {
    /// The statement that sends an array of jsonb, its only parameter.
    const SEND: &'static str;

    /// Prepares the statements that read and settle. A patient poller uses the queue's own way of waiting, if it has one.
    fn prepare(client: Client, on_ack: OnAck, is_patient: bool) -> impl Future<Output = Result<Self>> + Send;

    /// Reads up to `qty` messages.
    fn read(&mut self, qty: i32) -> impl Future<Output = Result<Vec<Taken>>> + Send;

    /// Settles a batch as done.
    fn settle(&mut self, taken: &[(i64, i32)]) -> impl Future<Output = Result<()>> + Send;

    /// Does what is to be done now and then.
    fn upkeep(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

/// A producer by SQL.
pub(crate) struct Sender<V> {
    client: Client,
    send: Statement,
    verbs: std::marker::PhantomData<fn() -> V>,
}

impl<V> std::fmt::Debug for Sender<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sender")
    }
}

impl<V: Verbs> Sender<V> {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        let send = client.prepare(V::SEND).await?;
        Ok(Self { client, send, verbs: std::marker::PhantomData })
    }

    pub(crate) async fn send(&self, bodies: Vec<Body>) -> Result<()> {
        let bodies: Vec<Json<Body>> = bodies.into_iter().map(Json).collect();
        self.client.query(&self.send, &[&bodies]).await?;
        Ok(())
    }
}

/// Takes a row apart whose columns have these names.
pub(crate) fn taken(row: &Row, id: &str, read_ct: Option<&str>) -> Result<Taken> {
    let Json(body) = row.try_get::<_, Json<Body>>("message")?;
    let read_ct = read_ct.map_or(Ok(0), |column| row.try_get(column))?;
    Ok(Taken { id: row.try_get(id)?, read_ct, body })
}

/// Runs the pollers until they are told to stop, or one of them fails.
pub(crate) async fn run<V: Verbs>(consume: Consume) -> Result<()> {
    let mut pollers = JoinSet::new();
    for number in 0..consume.shape.pollers {
        let consume = consume.clone();
        pollers.spawn(async move {
            let client = connect(&consume.url).await?;
            let verbs = V::prepare(client, consume.on_ack, consume.shape.is_patient).await?;
            let stop = consume.stop.clone();
            stop.run_until_cancelled(poll(verbs, &consume, number == 0)).await.unwrap_or(Ok(()))
        });
    }
    while let Some(ended) = pollers.join_next().await {
        ended??;
    }
    Ok(())
}

async fn poll<V: Verbs>(mut verbs: V, consume: &Consume, keeps_up: bool) -> Result<()> {
    let mut upkeep_due = Instant::now() + UPKEEP;
    let qty = i32::try_from(consume.shape.batch)?;
    loop {
        if keeps_up && Instant::now() > upkeep_due {
            verbs.upkeep().await?;
            upkeep_due = Instant::now() + UPKEEP;
        }
        let batch = verbs.read(qty).await?;
        if batch.is_empty() {
            tokio::time::sleep(IDLE).await;
            continue;
        }
        let leases: Vec<(i64, i32)> = batch.iter().map(|taken| (taken.id, taken.read_ct)).collect();
        handle(batch, consume).await?;
        verbs.settle(&leases).await?;
    }
}

async fn handle(batch: Vec<Taken>, consume: &Consume) -> Result<()> {
    if consume.handler.is_instant() {
        for taken in batch {
            consume.handler.handle(taken.body).await;
        }
        return Ok(());
    }
    join_all(batch.into_iter().map(|taken| consume.handler.handle(taken.body))).await;
    Ok(())
}

//! Where the demo runs: a throwaway PostgreSQL, or the database that was named.

use std::env;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::task;
use vtq::{Backoff, ConnectOptions, ErrorKind, Exact, Queue, QueueOptions, Vtq};
use vtq_dev::Cluster;

use super::QUEUE;
use super::progress::{self, Progress};
use super::signals::Signals;
use crate::args::Global;

/// The database in a throwaway cluster.
const DATABASE: &str = "postgres";

/// A database, and the cluster around it if it is ours. Dropping it removes the cluster.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) vtq: Vtq,
    pub(super) queue: Queue,
    cluster: Option<Cluster>,
    has_made_queue: bool,
}

impl Place {
    /// Connects to the database that was named; if none was, starts one. `None`: a signal came first.
    pub(super) async fn open(
        global: &Global,
        progress: &Progress,
        signals: &mut Signals,
    ) -> anyhow::Result<Option<Self>> {
        let (vtq, cluster) = if is_named(global) {
            progress.begin("connecting");
            let vtq = tokio::select! {
                vtq = global.connect() => vtq?,
                () = signals.next() => return Ok(None),
            };
            progress.done(&format!("connected to {}", vtq.redacted()));
            (vtq, None)
        } else {
            let Some(cluster) = start(progress, signals).await? else { return Ok(None) };
            (ConnectOptions::from_url(&cluster.socket_url_for(DATABASE))?.connect().await?, Some(cluster))
        };
        Ok(Some(Self { queue: vtq.queue(QUEUE)?, vtq, cluster, has_made_queue: false }))
    }

    /// Brings in the schema and makes an empty queue.
    pub(super) async fn prepare(&mut self, may_drop: bool, progress: &Progress) -> anyhow::Result<()> {
        progress.begin("creating the schema");
        self.vtq.migrate().await?;
        self.make_room(may_drop).await?;
        // Quick, so that the demo is: real queues keep the defaults of 5 s and 30 s.
        let options = QueueOptions::new()
            .visibility_timeout(Duration::from_secs(1))
            .max_attempts(4)
            .backoff(&Backoff::exponential(Duration::from_millis(200)));
        self.has_made_queue = true;
        self.queue.create(&options).await?;
        progress.done(&format!("queue {QUEUE} created: lease 1 s, 4 attempts, backoff from 0.2 s"));
        Ok(())
    }

    async fn make_room(&self, may_drop: bool) -> anyhow::Result<()> {
        let metrics = match self.queue.metrics(Exact::Yes).await {
            Err(error) if error.kind() == ErrorKind::QueueNotFound => return Ok(()),
            answer => answer?,
        };
        let live = progress::live(&metrics);
        let (dead, settled) = (metrics.dead.unwrap_or_default(), self.settled().await?);
        if live + dead + settled > 0 && !may_drop {
            bail!(
                "queue `{QUEUE}` of {} is not empty ({live} live, {dead} dead, {settled} settled): \
                 `vtq demo --yes` drops it and starts anew",
                self.vtq.redacted()
            );
        }
        self.queue.drop_queue().await?;
        Ok(())
    }

    async fn settled(&self) -> anyhow::Result<u64> {
        let (client, _notifications) = self.vtq.dedicated().await?.spawn();
        let row = client.query_one("SELECT count(*) FROM vtq.demo_archive", &[]).await?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }

    /// Whether the database goes when this is dropped.
    pub(super) fn is_throwaway(&self) -> bool {
        self.cluster.is_some()
    }

    /// A URL of the throwaway database, without a password; `None` where the database is the user's own.
    pub(super) fn throwaway_url(&self) -> Option<String> {
        self.cluster.as_ref().map(|cluster| cluster.socket_url_for(DATABASE))
    }

    /// A shell command that opens the throwaway database in psql.
    pub(super) fn psql_line(&self) -> Option<String> {
        self.cluster.as_ref().map(|cluster| cluster.psql_line(DATABASE))
    }

    /// Takes back what an interrupted demo has made.
    pub(super) async fn abandon(self) -> anyhow::Result<()> {
        if self.cluster.is_none() && self.has_made_queue {
            self.queue.drop_queue().await?;
        }
        Ok(())
    }
}

/// Whether a database was named, by option or in the environment.
fn is_named(global: &Global) -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    global.has_database_url() || is_set("PGHOST") || is_set("PGHOSTADDR")
}

async fn start(progress: &Progress, signals: &mut Signals) -> anyhow::Result<Option<Cluster>> {
    progress.begin("starting a throwaway PostgreSQL");
    let mut start = task::spawn_blocking(|| Cluster::builder().start());
    let started = tokio::select! {
        started = &mut start => started,
        () = signals.next() => {
            // There is no stopping halfway: what has been started is removed.
            drop(start.await);
            return Ok(None);
        }
    };
    let cluster = started.context("the start of PostgreSQL was cut short")??;
    progress.done(&format!("throwaway PostgreSQL {} started", cluster.version()));
    Ok(Some(cluster))
}

//! Looks at the server once a second: sizes, dead rows, WAL, CPU, notifications.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use vtq::{QueueName, Vtq};

use super::cpu;
use super::listener::Listener;
use super::live::Live;
use super::series::{Sample, Series};
use super::tally::Tally;

const EVERY: Duration = Duration::from_secs(1);
/// A server that takes longer than this to answer is looked at again the next time.
const LIMIT: Duration = Duration::from_secs(5);

const FIGURES: &str = "\
SELECT pg_relation_size(t.id), pg_total_relation_size(t.id), pg_stat_get_dead_tuples(t.id), q.compaction_ct,
    ARRAY(SELECT a.pid FROM pg_stat_activity AS a WHERE a.application_name = $2)
FROM vtq._queue AS q
CROSS JOIN LATERAL (SELECT to_regclass(format('vtq.%I', q.queue))::oid) AS t (id)
WHERE q.queue = $1";
const WAL: &str = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
const BACKEND: &str = "\
SELECT a.pid, extract(epoch FROM a.backend_start)::float8
FROM pg_stat_activity AS a WHERE a.pid = pg_backend_pid()";

/// Who looks, and what was seen.
#[derive(Debug)]
pub(super) struct Sampler {
    client: Client,
    listener: Option<Listener>,
    queue: QueueName,
    /// The name of the connections that do the work.
    application: String,
    tally: Arc<Tally>,
    processes: Option<cpu::Server>,
    first: Option<First>,
    seen: Seen,
}

/// What the figures were when the clock started.
#[derive(Debug, Clone, Copy)]
struct First {
    wal: Option<i64>,
    compactions: i64,
    server: Option<Duration>,
    client: Option<Duration>,
    notifications: Option<u64>,
    /// The start of the clock.
    at: Instant,
}

/// What was seen in a run; `None`: not visible from here.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) series: Series,
    pub(super) wal_bytes: Option<u64>,
    pub(super) own_cpu: Option<Duration>,
    pub(super) server_cpu: Option<Duration>,
    pub(super) client_cpu: Option<Duration>,
    pub(super) notifications: Option<u64>,
    pub(super) compactions: Option<u64>,
    pub(super) dead_rows_max: Option<u64>,
    pub(super) table_bytes_max: Option<u64>,
    pub(super) total_bytes_max: Option<u64>,
}

/// One look at the queue.
struct Figures {
    table_bytes: u64,
    total_bytes: u64,
    dead_rows: u64,
    compactions: i64,
    backends: Vec<i32>,
}

impl Sampler {
    /// Connects, and begins to count notifications.
    pub(super) async fn open(
        vtq: &Vtq,
        queue: &QueueName,
        application: &str,
        tally: Arc<Tally>,
    ) -> anyhow::Result<Self> {
        let client = vtq.dedicated().await?.spawn().0;
        let listener = Listener::open(vtq, queue, &client).await?;
        let backend = client.query_typed(BACKEND, &[]).await.context("ask for the server's process")?;
        let processes = backend
            .first()
            .and_then(|row| cpu::Server::find(row.get::<_, i32>(0).unsigned_abs(), row.get(1)));
        Ok(Self {
            client,
            listener,
            queue: queue.clone(),
            application: application.to_owned(),
            tally,
            processes,
            first: None,
            seen: Seen::default(),
        })
    }

    /// Takes the first figures, and starts the clock.
    pub(super) async fn begin(&mut self) -> Instant {
        let wal = self.wal().await;
        let figures = self.figures().await;
        if let (Some(processes), Some(figures)) = (&mut self.processes, &figures) {
            processes.look(&figures.backends, true);
        }
        let first = First {
            wal,
            compactions: figures.map_or(0, |figures| figures.compactions),
            server: self.processes.as_ref().and_then(cpu::Server::all),
            client: cpu::this_process(),
            notifications: self.listener.as_ref().map(Listener::heard),
            at: Instant::now(),
        };
        self.first.insert(first).at
    }

    /// Looks once a second, and a last time when it is told to stop.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>, live: Live) -> Seen {
        let Some(first) = self.first else { return self.seen };
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            let is_last = tokio::select! {
                _ = ticks.tick() => false,
                _ = stop.wait_for(|stops| *stops) => true,
            };
            self.look(first, &live).await;
            if is_last {
                break;
            }
        }
        self.finish(first).await;
        live.clear();
        self.seen
    }

    async fn look(&mut self, first: First, live: &Live) {
        // What this process counts is read first: it must not wait for the server.
        let waits = self.tally.waits.take();
        let mut sample = Sample::new(first.at.elapsed(), &self.tally, &waits);
        if let Some(figures) = self.figures().await {
            sample.table_bytes = Some(figures.table_bytes);
            sample.dead_rows = Some(figures.dead_rows);
            if let Some(processes) = &mut self.processes {
                processes.look(&figures.backends, false);
            }
            let seen = &mut self.seen;
            seen.table_bytes_max = seen.table_bytes_max.max(Some(figures.table_bytes));
            seen.total_bytes_max = seen.total_bytes_max.max(Some(figures.total_bytes));
            seen.dead_rows_max = seen.dead_rows_max.max(Some(figures.dead_rows));
            seen.compactions = u64::try_from(figures.compactions - first.compactions).ok();
        }
        live.show(self.seen.series.push(sample));
    }

    async fn finish(&mut self, first: First) {
        let wal = self.wal().await;
        let seen = &mut self.seen;
        let since = |now: Option<Duration>, then: Option<Duration>| Some(now?.saturating_sub(then?));
        seen.wal_bytes = wal.zip(first.wal).and_then(|(now, then)| u64::try_from(now - then).ok());
        seen.own_cpu = self.processes.as_ref().map(cpu::Server::own);
        seen.server_cpu = since(self.processes.as_ref().and_then(cpu::Server::all), first.server);
        seen.client_cpu = since(cpu::this_process(), first.client);
        seen.notifications = self
            .listener
            .as_ref()
            .map(Listener::heard)
            .zip(first.notifications)
            .map(|(now, then)| now - then);
    }

    /// `None`: this server does not say, or not to this role.
    async fn wal(&self) -> Option<i64> {
        Some(self.ask(WAL, &[]).await?.get(0))
    }

    async fn figures(&self) -> Option<Figures> {
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.queue.as_str(), Type::TEXT), (&self.application, Type::TEXT)];
        let row = self.ask(FIGURES, &params).await?;
        let count = |place: usize| Some(row.get::<_, Option<i64>>(place)?.unsigned_abs());
        Some(Figures {
            table_bytes: count(0)?,
            total_bytes: count(1)?,
            dead_rows: count(2)?,
            compactions: row.get(3),
            backends: row.get(4),
        })
    }

    /// A look that fails is one look less: the run goes on.
    async fn ask(&self, sql: &str, params: &[(&(dyn ToSql + Sync), Type)]) -> Option<Row> {
        let rows = timeout(LIMIT, self.client.query_typed(sql, params)).await.ok()?;
        rows.inspect_err(|error| tracing::debug!("a look at the server failed: {error}")).ok()?.pop()
    }
}

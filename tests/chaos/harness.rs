//! What every test stands on: a cluster, the workers on it, the load, and dice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, oneshot};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};
use vtq::{
    Capsule, ConnectOptions, Context, Message, QueueOptions, Stopped, Vtq, Worker, WorkerBuilder, WorkerEvent,
};
use vtq_dev::{Builder, Cluster};
use vtq_tests::wait_until;

use crate::clock::{Micros, now};
use crate::producer::{Load, Producer};
use crate::runs::Runs;
use crate::work::perform;

/// How long a worker may take to be back once the database is. The promise is 10 s; three times as much is for a
/// machine that does other things as well, and the time that it took is printed.
pub(crate) const RECOVERY: Duration = Duration::from_secs(30);

/// Held by every test; one that takes all cores takes it for itself.
static MACHINE: RwLock<()> = RwLock::const_new(());

/// Random numbers that `VTQ_CHAOS_SEED` repeats, for each test its own.
#[derive(Debug)]
pub(crate) struct Dice(StdRng);

impl Dice {
    fn new(name: &str) -> Self {
        static SEED: OnceLock<u64> = OnceLock::new();
        let seed = *SEED.get_or_init(|| {
            let set = std::env::var("VTQ_CHAOS_SEED").ok();
            let seed =
                set.map_or_else(|| rand::random_range(0..1_000_000), |text| text.parse().expect("a number"));
            eprintln!("VTQ_CHAOS_SEED={seed}");
            seed
        });
        let of_name = name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Self(StdRng::seed_from_u64(of_name))
    }

    /// A number under `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.random_range(0..limit.max(1))
    }

    /// Other dice, for a task of its own.
    pub(crate) fn fork(&mut self) -> Self {
        Self(StdRng::seed_from_u64(self.0.random()))
    }

    /// Waits somewhere between two times.
    pub(crate) async fn wait(&mut self, from_ms: u64, to_ms: u64) {
        tokio::time::sleep(Duration::from_millis(from_ms + self.below(to_ms - from_ms))).await;
    }
}

/// The right to use the machine, with others or alone.
#[derive(Debug)]
#[expect(dead_code, reason = "held, not read")]
enum Turn {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// A test's cluster with a queue `q`, and who works on it.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) cluster: Cluster,
    pub(crate) dice: Dice,
    pub(crate) runs: Runs,
    /// How many handlers each worker runs at once.
    pub(crate) concurrency: usize,
    pub(crate) workers: Vec<Running>,
    /// What the test found out and its line of results is to say.
    pub(crate) notes: Vec<String>,
    numbers: Arc<AtomicUsize>,
    _turn: Turn,
}

/// The options of most tests: nothing here is to wait for a lease of half a minute.
pub(crate) fn short_lease(visibility_timeout: u64) -> QueueOptions {
    QueueOptions::new().visibility_timeout(Duration::from_secs(visibility_timeout)).max_attempts(10)
}

impl Stage {
    /// Starts a cluster and makes the queue.
    pub(crate) async fn new(name: &'static str, options: QueueOptions) -> Self {
        Self::with(name, options, |builder| builder).await
    }

    /// As [`new`](Self::new), with settings of the server.
    pub(crate) async fn with(
        name: &'static str,
        options: QueueOptions,
        setup: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let turn = Turn::Shared(MACHINE.read().await);
        Self::on(name, options, setup, turn).await
    }

    /// As [`new`](Self::new), while no other test runs.
    pub(crate) async fn alone(name: &'static str, options: QueueOptions) -> Self {
        let turn = Turn::Alone(MACHINE.write().await);
        Self::on(name, options, |builder| builder, turn).await
    }

    async fn on(
        name: &'static str,
        options: QueueOptions,
        setup: impl FnOnce(Builder) -> Builder,
        turn: Turn,
    ) -> Self {
        let cluster = vtq_tests::own_cluster(setup);
        vtq_tests::install(&cluster.url()).await;
        let vtq = Vtq::connect(&cluster.url()).await.unwrap();
        vtq.queue("q").unwrap().create(&options).await.unwrap();
        Self {
            name,
            cluster,
            dice: Dice::new(name),
            runs: Runs::default(),
            concurrency: 8,
            workers: Vec::new(),
            notes: Vec::new(),
            numbers: Arc::default(),
            _turn: turn,
        }
    }

    /// Starts the load, straight to the cluster.
    pub(crate) fn produce(&mut self, load: Load) -> Producer {
        Producer::start(&self.cluster.url(), load, self.dice.fork())
    }

    /// A connection of the test's own, straight to the cluster.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.cluster.url()).await
    }

    /// A number for a worker that nobody had before.
    pub(crate) fn next_number(&self) -> usize {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a worker on the database at `url`.
    pub(crate) fn work(&mut self, url: &str) {
        self.work_with(options(url), |builder| builder);
    }

    /// Starts a worker that is set up in its own way.
    pub(crate) fn work_with(
        &mut self,
        options: ConnectOptions,
        setup: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
    ) {
        let number = self.next_number();
        let runs = self.runs.clone();
        let handler = vtq::handler_fn(move |message: Message, context: Context| {
            let runs = runs.clone();
            async move {
                let _ends = runs.begin(number, &message);
                perform(&message, &context).await
            }
        });
        let events = Events::default();
        let seen = events.clone();
        let vtq = options.lazy().unwrap();
        let builder =
            Worker::builder(&vtq).capsule(Capsule::new(["q"], handler).concurrency(self.concurrency));
        let worker = setup(builder).on_event(move |event| seen.push(event)).build().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(worker.run(async move {
            let _ = stopped.await;
        }));
        self.workers.push(Running { number, task, stop, events });
    }

    /// Waits until every worker has begun a run after a moment, and notes how long that took.
    pub(crate) async fn recovered(&mut self, since: Micros) {
        for worker in &self.workers {
            let has_begun = async || self.runs.begun_since(worker.number, since) > 0;
            wait_until(RECOVERY, &format!("{}: worker {} to be back", self.name, worker.number), has_begun)
                .await;
        }
        let took = (now() - since) as f64 / 1e6;
        self.notes.push(format!("back in {took:.1} s"));
    }

    /// Waits until so many runs have begun.
    pub(crate) async fn warm(&self, runs: usize) {
        let has_run = async || self.runs.len() >= runs;
        wait_until(Duration::from_secs(60), &format!("{}: {runs} runs", self.name), has_run).await;
    }
}

/// Connects without the library: what looks on is not what is looked at.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// A worker's way to the database, with limits that fit a short test.
pub(crate) fn options(url: &str) -> ConnectOptions {
    ConnectOptions::from_url(url).unwrap().statement_limit(Duration::from_secs(2))
}

/// A worker of this process.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) number: usize,
    task: JoinHandle<vtq::Result<Stopped>>,
    stop: oneshot::Sender<()>,
    pub(crate) events: Events,
}

impl Running {
    /// Stops it; a worker that has ended by itself fails the test.
    pub(crate) async fn stop(self) -> Stopped {
        drop(self.stop);
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, self.task).await.expect("the worker ends").unwrap().expect("no error")
    }
}

/// Everything that a worker told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<WorkerEvent>>>);

impl Events {
    fn push(&self, event: &WorkerEvent) {
        // One for each run: too many to keep, and `Runs` has them.
        if !matches!(event, WorkerEvent::RunStarted { .. } | WorkerEvent::Settled { .. }) {
            self.0.lock().unwrap().push(event.clone());
        }
    }

    pub(crate) fn count(&self, is_meant: impl Fn(&WorkerEvent) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|event| is_meant(event)).count()
    }

    /// What it said each time when it told that the database is gone.
    pub(crate) fn losses(&self) -> Vec<String> {
        let told = |event: &WorkerEvent| match event {
            WorkerEvent::DatabaseLost { part, error } => Some(format!("{part}: {error}")),
            _ => None,
        };
        self.0.lock().unwrap().iter().filter_map(told).collect()
    }
}

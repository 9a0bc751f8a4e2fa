//! The worker engine, through its public face.

mod accounting;
mod asleep;
mod batch;
mod endings;
mod leases;
mod limits;
mod once;
mod pressure;
mod schedules;
mod shutdown;
mod wake_up;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use vtq::{Handler, Queue, QueueOptions, Stopped, Vtq, Worker, WorkerBuilder, WorkerEvent};
use vtq_tests::TestDb;

/// A database with a queue `q`, and what looks into it.
pub(crate) struct Bench {
    pub(crate) db: TestDb,
    pub(crate) vtq: Vtq,
    pub(crate) queue: Queue,
    pub(crate) client: Client,
}

impl Bench {
    pub(crate) async fn new(options: QueueOptions) -> Self {
        let db = TestDb::new().await;
        let vtq = Vtq::connect(db.url()).await.unwrap();
        let queue = vtq.queue("q").unwrap();
        queue.create(&options).await.unwrap();
        let client = db.client().await;
        Self { db, vtq, queue, client }
    }

    /// Starts a worker on `q` in a task of its own.
    pub(crate) fn start(
        &self,
        handler: impl Handler,
        setup: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
    ) -> Running {
        self.start_with(handler, 4, setup)
    }

    /// The same, with a number of slots.
    pub(crate) fn start_with(
        &self,
        handler: impl Handler,
        concurrency: usize,
        setup: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
    ) -> Running {
        let events = Events::default();
        let seen = events.clone();
        let capsule = vtq::Capsule::new(["q"], handler).concurrency(concurrency);
        let builder = Worker::builder(&self.vtq).capsule(capsule).on_event(move |event| seen.push(event));
        let worker = setup(builder).build().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(worker.run(async move {
            let _ = stopped.await;
        }));
        Running { task, stop: Some(stop), events }
    }

    /// One number out of the database.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// One text out of the database.
    pub(crate) async fn text(&self, sql: &str) -> String {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }
}

/// Everything that a worker told.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<WorkerEvent>>>);

impl Events {
    fn push(&self, event: &WorkerEvent) {
        self.0.lock().unwrap().push(event.clone());
    }

    pub(crate) fn count(&self, is_meant: impl Fn(&WorkerEvent) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|event| is_meant(event)).count()
    }
}

/// A worker at work.
pub(crate) struct Running {
    task: JoinHandle<vtq::Result<Stopped>>,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) events: Events,
}

impl Running {
    pub(crate) fn begin_stop(&mut self) {
        self.stop.take();
    }

    pub(crate) async fn stop(mut self) -> Stopped {
        self.begin_stop();
        self.ended().await
    }

    /// Waits for a worker that stops by itself, or was told to.
    pub(crate) async fn ended(self) -> Stopped {
        tokio::time::timeout(Duration::from_secs(60), self.task)
            .await
            .expect("the worker ends")
            .unwrap()
            .unwrap()
    }

    /// Ends the worker as a kill would: nothing is given back.
    pub(crate) fn kill(self) {
        self.task.abort();
    }
}

/// Waits, at most half a minute, until something is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    vtq_tests::wait_until(Duration::from_secs(30), what, is_so).await;
}

/// A handler that waits for a permit, and so runs as long as the test likes.
pub(crate) fn gated(gate: Arc<tokio::sync::Semaphore>) -> impl Handler {
    vtq::handler_fn(move |_, _| pass(gate.clone()))
}

async fn pass(gate: Arc<tokio::sync::Semaphore>) {
    gate.acquire().await.unwrap().forget();
}

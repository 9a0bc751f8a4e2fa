//! How a worker ends: nothing lost, nothing run twice, nothing counted that did not run.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use vtq::{ErrorKind, Outgoing, QueueOptions, SendOptions, Vtq, Worker, WorkerEvent, handler_fn};
use vtq_tests::TestDb;

use super::{Bench, gated, until};

async fn with_messages(count: usize) -> Bench {
    let bench = Bench::new(QueueOptions::new().visibility_timeout(Duration::from_secs(3))).await;
    let batch: Vec<Outgoing> = (0..count).map(|n| Outgoing::new(&n).unwrap()).collect();
    bench.queue.send_batch(&batch, &SendOptions::new()).await.unwrap();
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn running_handlers_finish_and_the_rest_is_visible() {
    let bench = with_messages(10).await;
    let gate = Arc::new(Semaphore::new(0));
    let mut worker = bench.start(gated(gate.clone()), |b| b);
    let events = worker.events.clone();
    until("four to run", async || events.count(|e| matches!(e, WorkerEvent::RunStarted { .. })) == 4).await;

    worker.begin_stop();
    until("the stop to begin", async || events.count(|e| matches!(e, WorkerEvent::Stopping { .. })) == 1)
        .await;
    gate.add_permits(4);
    let stopped = worker.ended().await;

    assert_eq!((stopped.done, stopped.interrupted), (4, 0));
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q WHERE vt <= clock_timestamp()").await, 6);
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q WHERE read_ct <> refunded_ct").await, 0);
    assert_eq!(bench.number("SELECT count(*) FROM vtq._worker").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_past_the_drain_timeout_are_given_back() {
    let bench = with_messages(2).await;
    let setup = |builder: vtq::WorkerBuilder| {
        builder.drain_timeout(Duration::from_millis(200)).grace(Duration::from_millis(100))
    };
    let worker = bench.start(handler_fn(|_, _| std::future::pending::<()>()), setup);
    let events = worker.events.clone();
    until("both to run", async || events.count(|e| matches!(e, WorkerEvent::RunStarted { .. })) == 2).await;

    let stopped = worker.stop().await;

    assert_eq!((stopped.interrupted, stopped.given_back, stopped.done), (2, 2, 0));
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q WHERE vt = ready_at AND refunded_ct = 1").await, 2);
}

#[tokio::test]
async fn worker_of_a_queue_that_is_not_there_is_refused() {
    let db = TestDb::new().await;
    let vtq = Vtq::connect(db.url()).await.unwrap();
    let capsule = vtq::Capsule::new(["nope"], handler_fn(|_, _| async {}));

    let worker = Worker::builder(&vtq).capsule(capsule).build().unwrap();
    let error = worker.run(std::future::pending()).await.unwrap_err();

    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::QueueNotFound, "queue \"nope\" does not exist")
    );
}

#[tokio::test]
async fn worker_of_a_database_without_vtq_is_refused() {
    let db = TestDb::empty().await;
    let vtq = Vtq::connect(db.url()).await.unwrap();
    let capsule = vtq::Capsule::new(["q"], handler_fn(|_, _| async {}));

    let worker = Worker::builder(&vtq).capsule(capsule).build().unwrap();
    let error = worker.run(std::future::pending()).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::NotMigrated);
    assert!(error.to_string().contains("vtq migrate"), "{error}");
}

#[tokio::test]
async fn heartbeat_slower_than_a_third_of_the_lease_is_refused() {
    let bench = with_messages(0).await;
    let capsule = vtq::Capsule::new(["q"], handler_fn(|_, _| async {}));

    let builder = Worker::builder(&bench.vtq).capsule(capsule).heartbeat(Duration::from_millis(1100));
    let error = builder.build().unwrap().run(std::future::pending()).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert!(error.to_string().contains("heartbeat 1.1s is too slow for queue `q`"), "{error}");
}

#[test]
fn nonsense_is_refused_when_it_is_built() {
    let vtq = vtq::ConnectOptions::from_url("postgres://localhost/none").unwrap().lazy().unwrap();
    let capsule = || vtq::Capsule::new(["q"], handler_fn(|_, _| async {}));
    let refusal = |builder: vtq::WorkerBuilder| builder.build().unwrap_err().to_string();

    assert_eq!(refusal(Worker::builder(&vtq)), "a worker needs at least one queue");
    assert_eq!(
        refusal(Worker::builder(&vtq).capsule(capsule().concurrency(0))),
        "concurrency 0 of `q` is not allowed: it must be from 1 to 10000"
    );
    assert_eq!(
        refusal(Worker::builder(&vtq).capsule(capsule()).capsule(capsule())),
        "queue `q` is given twice"
    );
}

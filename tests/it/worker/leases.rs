//! A message is with one worker at a time, however long it runs and whatever happens to its worker.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use vtq::{
    CancelCause, Context, Message, MessageId, Outgoing, QueueOptions, SendOptions, WorkerEvent, handler_fn,
};

use super::{Bench, gated, until};

fn short_lease() -> QueueOptions {
    QueueOptions::new().visibility_timeout(Duration::from_secs(1)).max_attempts(3)
}

async fn send(bench: &Bench, count: usize) {
    let batch: Vec<Outgoing> = (0..count).map(|n| Outgoing::new(&n).unwrap()).collect();
    bench.queue.send_batch(&batch, &SendOptions::new()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn job_longer_than_its_lease_runs_once() {
    let bench = Bench::new(short_lease()).await;
    send(&bench, 1).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let handler = || {
        let runs = runs.clone();
        handler_fn(move |_, _| {
            runs.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(4))
        })
    };

    let workers = [bench.start(handler(), |b| b), bench.start(handler(), |b| b)];
    until("the archive to have it", async || bench.number("SELECT count(*) FROM vtq.q_archive").await == 1)
        .await;

    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(bench.number("SELECT read_ct::bigint FROM vtq.q_archive").await, 1);
    for worker in workers {
        worker.stop().await;
    }
}

/// The handler takes the only thread of the runtime; the heartbeat has its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn handler_that_blocks_its_runtime_keeps_its_lease() {
    let bench = Bench::new(short_lease()).await;
    send(&bench, 1).await;
    let worker = bench.start(handler_fn(|_, _| async { std::thread::sleep(Duration::from_secs(3)) }), |b| b);

    until("the archive to have it", async || bench.number("SELECT count(*) FROM vtq.q_archive").await == 1)
        .await;

    assert_eq!(bench.number("SELECT read_ct::bigint FROM vtq.q_archive").await, 1);
    assert_eq!(worker.stop().await.lost, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_of_a_dead_worker_goes_to_another() {
    let bench = Bench::new(short_lease()).await;
    send(&bench, 1).await;
    let dying = bench.start(handler_fn(|_, _| std::future::pending::<()>()), |b| b);
    let marked =
        async || bench.number("SELECT coalesce(max(started_read_ct), 0)::bigint FROM vtq.q").await == 1;
    until("the start to be recorded", marked).await;

    dying.kill();
    let heir = bench.start(handler_fn(|_, _| async {}), |b| b);
    until("the archive to have it", async || bench.number("SELECT count(*) FROM vtq.q_archive").await == 1)
        .await;

    assert_eq!(bench.text("SELECT outcome FROM vtq.q_attempts WHERE read_ct = 1").await, "abandoned");
    assert_eq!(bench.number("SELECT read_ct::bigint FROM vtq.q_archive").await, 2);
    heir.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_message_stops_its_handler() {
    let bench = Bench::new(short_lease()).await;
    send(&bench, 1).await;
    let cause = Arc::new(Mutex::new(None));
    let seen = cause.clone();
    let handler = handler_fn(move |_, context: Context| {
        let seen = seen.clone();
        async move { *seen.lock().unwrap() = Some(context.until_cancelled().await) }
    });
    let worker = bench.start(handler, |b| b);
    let events = worker.events.clone();
    until("the run to start", async || events.count(|e| matches!(e, WorkerEvent::RunStarted { .. })) == 1)
        .await;

    assert!(bench.queue.cancel(1).await.unwrap());
    until("the handler to learn of it", async || cause.lock().unwrap().is_some()).await;

    assert_eq!(*cause.lock().unwrap(), Some(CancelCause::LeaseLost));
    let stopped = worker.stop().await;
    assert_eq!((stopped.lost, stopped.done), (1, 0));
    assert_eq!(events.count(|e| matches!(e, WorkerEvent::LeaseLost { id: 1, .. })), 1);
    assert_eq!(bench.text("SELECT outcome FROM vtq.q_attempts").await, "cancelled");
}

/// 30 runs of 100 ms on one slot take three times the lease.
#[tokio::test(flavor = "multi_thread")]
async fn message_that_waits_for_a_slot_does_not_lapse() {
    let bench = Bench::new(short_lease()).await;
    send(&bench, 30).await;
    let capsule = vtq::Capsule::new(["q"], handler_fn(|_, _| tokio::time::sleep(Duration::from_millis(100))));

    let worker = vtq::Worker::builder(&bench.vtq).capsule(capsule.concurrency(1)).once().build().unwrap();
    let stopped = worker.run(std::future::pending()).await.unwrap();

    assert_eq!(stopped.done, 30);
    assert_eq!(bench.number("SELECT max(read_ct)::bigint FROM vtq.q_archive").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_workers_run_each_of_3000_messages_once() {
    let bench = Bench::new(QueueOptions::new()).await;
    send(&bench, 3000).await;
    let runs: Arc<Mutex<HashMap<MessageId, usize>>> = Arc::default();
    let handler = || {
        let runs = runs.clone();
        handler_fn(move |message: Message, _| {
            *runs.lock().unwrap().entry(message.id()).or_default() += 1;
            async {}
        })
    };

    let workers = [(); 3].map(|()| bench.start(handler(), |b| b));
    until("all to be archived", async || bench.number("SELECT count(*) FROM vtq.q_archive").await == 3000)
        .await;
    for worker in workers {
        worker.stop().await;
    }

    let runs = runs.lock().unwrap();
    assert_eq!(runs.len(), 3000);
    assert!(runs.values().all(|&count| count == 1), "some message ran twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_over_run_cannot_settle() {
    let bench = Bench::new(short_lease()).await;
    send(&bench, 1).await;
    let gate = Arc::new(Semaphore::new(0));
    // Without a slot for it the worker does not look for the message itself.
    let worker = bench.start_with(gated(gate.clone()), 1, |b| b);
    let events = worker.events.clone();
    until("the run to start", async || events.count(|e| matches!(e, WorkerEvent::RunStarted { .. })) == 1)
        .await;

    // As if its heartbeats had not come through for a while, and another reader had come.
    vtq_tests::make_visible(&bench.client, "q", 1).await;
    let other = bench.queue.read(&vtq::ReadOptions::new()).await.unwrap();
    gate.add_permits(1);
    let stopped = worker.stop().await;

    assert_eq!(other.len(), 1);
    assert_eq!((stopped.done, stopped.lost), (0, 1));
    assert_eq!(bench.queue.ack(other[0].lease).await.unwrap(), vtq::Settled::Done);
}

/// As a crash of the server does that comes before the claim was on disk.
async fn undo_claim(bench: &Bench) {
    let undo = "UPDATE vtq.q SET vt = ready_at, read_ct = 0, started_read_ct = 0, last_read_at = NULL, holder = NULL";
    assert_eq!(bench.client.execute(undo, &[]).await.unwrap(), 1);
}

async fn holder(bench: &Bench) -> i64 {
    bench.number("SELECT coalesce(max(holder), 0)::bigint FROM vtq.q").await
}

/// Both have been given delivery 1 of the message: the number of the worker tells them apart.
#[tokio::test(flavor = "multi_thread")]
async fn worker_whose_claim_was_undone_cannot_settle_anothers_run() {
    let bench = Bench::new(QueueOptions::new()).await;
    let gates = [Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0))];
    let first = bench.start(gated(gates[0].clone()), |b| b);
    until("the first to be there", async || bench.number("SELECT count(*) FROM vtq._worker").await == 1)
        .await;
    bench.queue.send(&1).await.unwrap();
    until("the first to hold it", async || holder(&bench).await == 1).await;
    // The first would take it back itself, and be right to: it is kept from reading.
    bench.queue.pause(None, None).await.unwrap();
    undo_claim(&bench).await;
    bench
        .client
        .batch_execute("SELECT vtq.resume('q'); SELECT vtq.read('q', holder => 77, qty => 1)")
        .await
        .unwrap();
    assert_eq!(holder(&bench).await, 77);

    gates[0].add_permits(1);
    let stopped = first.stop().await;

    assert_eq!((stopped.done, stopped.lost), (0, 1));
    let held = "SELECT count(*) FROM vtq.extend('q', '{1}', '{1}', holder => 77)";
    assert_eq!(bench.number(held).await, 1, "the second still holds it");
}

#[tokio::test(flavor = "multi_thread")]
async fn claim_that_was_undone_and_comes_back_starts_no_second_run() {
    let bench = Bench::new(QueueOptions::new()).await;
    bench.queue.send(&1).await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let worker = bench.start(gated(gate.clone()), |b| b);
    let events = worker.events.clone();
    let starts = || events.count(|event| matches!(event, WorkerEvent::RunStarted { .. }));
    until("the run to start", async || starts() == 1).await;

    undo_claim(&bench).await;
    until("it to be claimed again", async || holder(&bench).await == 1).await;
    gate.add_permits(1);
    until("the archive to have it", async || bench.number("SELECT count(*) FROM vtq.q_archive").await == 1)
        .await;

    assert_eq!(starts(), 1);
    assert_eq!(worker.stop().await.done, 1);
}

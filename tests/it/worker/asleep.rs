//! A worker that sleeps while something runs, or while its queue is made anew, misses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use vtq::{Failure, Message, QueueOptions, ReadOptions, WakeUp, WorkerEvent, handler_fn};

use super::{Bench, Running, until};

/// A poll that no test waits for: what wakes the worker is not the poll.
const NEVER: Duration = Duration::from_secs(3600);

/// One message at a time, and leases that no test waits for.
fn limited() -> QueueOptions {
    QueueOptions::new().max_in_flight(1).visibility_timeout(Duration::from_secs(3600))
}

async fn sleeps(worker: &Running) {
    let events = worker.events.clone();
    until("the worker to sleep", async || events.count(|e| matches!(e, WorkerEvent::Asleep)) > 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn message_that_dies_makes_room_for_the_next_under_a_limit() {
    let bench = Bench::new(limited()).await;
    bench.queue.send(&1).await.unwrap();
    bench.queue.send(&2).await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let open = gate.clone();
    let handler = handler_fn(move |message: Message, _| {
        let gate = gate.clone();
        async move {
            if message.id() == 1 {
                gate.acquire().await.unwrap().forget();
                return Err(Failure::permanent("no such order"));
            }
            Ok(())
        }
    });
    let worker = bench.start(handler, |builder| builder.wake_up(WakeUp::Poll).slowest_poll(NEVER));
    sleeps(&worker).await;

    open.add_permits(1);

    until("the second to run", async || bench.number("SELECT count(*) FROM vtq.q").await == 0).await;
    assert_eq!(worker.stop().await.dead, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_of_another_that_dies_or_is_cancelled_makes_room_under_a_limit() {
    let bench = Bench::new(limited()).await;
    bench.queue.send(&1).await.unwrap();
    let held = bench.queue.read(&ReadOptions::new()).await.unwrap().remove(0);
    bench.queue.send(&2).await.unwrap();
    let worker = bench.start(handler_fn(|_, _| async {}), |builder| builder.slowest_poll(NEVER));
    sleeps(&worker).await;

    bench.text(&format!("SELECT vtq.dead_letter('q', {}, 1)", held.id())).await;

    until("the second to run", async || bench.number("SELECT count(*) FROM vtq.q").await == 0).await;
    worker.stop().await;

    bench.queue.send(&3).await.unwrap();
    let held = bench.queue.read(&ReadOptions::new()).await.unwrap().remove(0);
    bench.queue.send(&4).await.unwrap();
    let worker = bench.start(handler_fn(|_, _| async {}), |builder| builder.slowest_poll(NEVER));
    sleeps(&worker).await;

    bench.text(&format!("SELECT vtq.cancel('q', {})::text", held.id())).await;

    until("the fourth to run", async || bench.number("SELECT count(*) FROM vtq.q").await == 0).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_made_anew_wakes_the_worker_that_slept_on_the_old_one() {
    let bench = Bench::new(QueueOptions::new()).await;
    let worker = bench.start(handler_fn(|_, _| async {}), |builder| builder.slowest_poll(NEVER));
    sleeps(&worker).await;

    bench.client.batch_execute("SELECT vtq.drop_queue('q')").await.unwrap();
    bench.queue.create(&QueueOptions::new()).await.unwrap();
    bench.queue.send(&1).await.unwrap();

    until("it to run", async || bench.number("SELECT count(*) FROM vtq.q").await == 0).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn message_of_a_queue_made_anew_is_not_settled_by_the_run_of_an_old_one() {
    let bench = Bench::new(QueueOptions::new()).await;
    bench.queue.send(&"old").await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let open = gate.clone();
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let handler = handler_fn(move |message: Message, _| {
        let (gate, counter) = (gate.clone(), counter.clone());
        async move {
            if message.decode::<String>().unwrap() == "old" {
                gate.acquire().await.unwrap().forget();
            } else {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let worker = bench.start(handler, |builder| builder);
    let events = worker.events.clone();
    until("it to run", async || events.count(|e| matches!(e, WorkerEvent::RunStarted { .. })) > 0).await;
    bench.client.batch_execute("SELECT vtq.drop_queue('q')").await.unwrap();
    bench.queue.create(&QueueOptions::new()).await.unwrap();

    bench.queue.send(&"new").await.unwrap();

    until("the new one to be settled", async || {
        bench.number("SELECT count(*) FROM vtq.q_archive").await == 1
    })
    .await;
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    open.add_permits(1);
    assert_eq!(worker.stop().await.done, 1);
}

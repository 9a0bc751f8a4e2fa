//! A worker that runs once does all that is due, and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use vtq::{Capsule, Handler, Outgoing, QueueOptions, ReadOptions, SendOptions, Worker, handler_fn};

use super::Bench;

fn idle() -> impl Handler {
    handler_fn(|_, _| async {})
}

#[tokio::test(flavor = "multi_thread")]
async fn once_on_an_empty_queue_ends() {
    let bench = Bench::new(QueueOptions::new()).await;

    let stopped = bench.start(idle(), |builder| builder.once()).ended().await;

    assert_eq!(stopped.done, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn once_leaves_what_is_not_ready() {
    let bench = Bench::new(QueueOptions::new()).await;
    for n in 0..5 {
        bench.queue.send(&n).await.unwrap();
    }
    let later = SendOptions::new().delay(Duration::from_secs(3600));
    bench.queue.send_with(&Outgoing::new(&6).unwrap(), &later).await.unwrap();

    let stopped = bench.start(idle(), |builder| builder.once()).ended().await;

    assert_eq!(stopped.done, 5);
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q").await, 1);
}

/// The look that sweeps the first of the group away lets the second be due, and has read by then.
#[tokio::test(flavor = "multi_thread")]
async fn once_does_what_its_own_sweep_lets_run() {
    let bench = Bench::new(QueueOptions::new().max_attempts(1)).await;
    let group = SendOptions::new().group_key("g");
    for n in 0..2 {
        bench.queue.send_with(&Outgoing::new(&n).unwrap(), &group).await.unwrap();
    }
    let short = ReadOptions::new().visibility_timeout(Duration::from_millis(1));
    assert_eq!(bench.queue.read(&short).await.unwrap().len(), 1);
    tokio::time::sleep(Duration::from_millis(5)).await;

    let stopped = bench.start(idle(), |builder| builder.once()).ended().await;

    assert_eq!(stopped.done, 1);
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q").await, 0);
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q_dlq").await, 1);
}

/// One admission takes in 40 lanes, and these go before the one that is free.
#[tokio::test(flavor = "multi_thread")]
async fn once_does_what_lies_behind_many_busy_groups() {
    let bench = Bench::new(QueueOptions::new()).await;
    let to = |group: usize| SendOptions::new().group_key(format!("g{group:03}"));
    for group in 0..100 {
        bench.queue.send_with(&Outgoing::new(&1).unwrap(), &to(group)).await.unwrap();
    }
    let mut held = 0;
    while held < 100 {
        held += bench.queue.read(&ReadOptions::new().qty(100)).await.unwrap().len();
    }
    for group in 0..=100 {
        bench.queue.send_with(&Outgoing::new(&2).unwrap(), &to(group)).await.unwrap();
    }

    let stopped = bench.start(idle(), |builder| builder.once()).ended().await;

    assert_eq!(stopped.done, 1, "the one whose group nobody holds");
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_runs_once_ends_with_several_queues_beside_others() {
    let bench = Bench::new(QueueOptions::new()).await;
    let names = ["q", "r", "s", "t"];
    for name in &names[1..] {
        bench.vtq.queue(*name).unwrap().create(&QueueOptions::new()).await.unwrap();
    }
    let others = "INSERT INTO vtq._worker (worker_id, host, pid, version, queues) \
        SELECT 'other' || n, 'h', n, '0', '{q,r,s,t}' FROM generate_series(1, 7) AS n";
    bench.client.batch_execute(others).await.unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let handler = handler_fn(move |_, _| {
        let counter = counter.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    for name in names {
        bench.vtq.queue(name).unwrap().send(&1).await.unwrap();
    }

    let capsule = Capsule::new(names, handler).concurrency(5);
    let worker = Worker::builder(&bench.vtq).capsule(capsule).once().build().unwrap();
    let run = worker.run(std::future::pending::<()>());

    tokio::time::timeout(Duration::from_secs(30), run).await.expect("the worker ends").unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), names.len());
}

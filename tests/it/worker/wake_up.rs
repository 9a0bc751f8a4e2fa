//! An idle worker learns of work without delay, and a busy queue does not notify.

use std::time::Duration;

use vtq::{ConnectOptions, Outgoing, QueueOptions, SendOptions, WakeUp, WorkerEvent, handler_fn};

use super::{Bench, Running, until};

/// A poll that no test waits for: what wakes the worker is not the poll.
const NEVER: Duration = Duration::from_secs(3600);

async fn asleep(bench: &Bench) -> Running {
    let worker = bench.start(handler_fn(|_, _| async {}), |builder| builder.slowest_poll(NEVER));
    let events = worker.events.clone();
    until("the worker to sleep", async || events.count(|e| matches!(e, WorkerEvent::Asleep)) > 0).await;
    worker
}

async fn archived(bench: &Bench, count: i64) {
    until("the archive to have it", async || {
        bench.number("SELECT count(*) FROM vtq.q_archive").await == count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sleeping_worker_is_woken_by_a_send() {
    let bench = Bench::new(QueueOptions::new()).await;
    let worker = asleep(&bench).await;

    bench.queue.send(&1).await.unwrap();

    archived(&bench, 1).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delayed_message_wakes_the_worker_when_it_is_due() {
    let bench = Bench::new(QueueOptions::new()).await;
    let worker = asleep(&bench).await;
    let later = SendOptions::new().delay(Duration::from_secs(2));

    bench.queue.send_with(&Outgoing::new(&1).unwrap(), &later).await.unwrap();

    archived(&bench, 1).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_of_a_dead_reader_wakes_the_worker_when_it_lapses() {
    let bench = Bench::new(QueueOptions::new()).await;
    bench.queue.send(&1).await.unwrap();
    let lease = vtq::ReadOptions::new().visibility_timeout(Duration::from_secs(3));
    bench.queue.read(&lease).await.unwrap();

    let worker = asleep(&bench).await;

    archived(&bench, 1).await;
    worker.stop().await;
}

/// The send has looked for sleepers before there was one, and commits after the worker has looked for messages.
#[tokio::test(flavor = "multi_thread")]
async fn send_that_commits_after_the_announcement_is_not_missed() {
    let bench = Bench::new(QueueOptions::new()).await;
    bench.client.batch_execute("BEGIN; SELECT vtq.send('q', '1')").await.unwrap();
    let worker = asleep(&bench).await;

    bench.client.batch_execute("COMMIT").await.unwrap();

    archived(&bench, 1).await;
    worker.stop().await;
}

/// The one that was sent first commits last, when the reader's floor lies behind it.
#[tokio::test(flavor = "multi_thread")]
async fn message_that_commits_late_is_not_passed_over() {
    let bench = Bench::new(QueueOptions::new()).await;
    bench.client.batch_execute("BEGIN; SELECT vtq.send('q', '1')").await.unwrap();
    let worker = bench.start(handler_fn(|_, _| async {}), |builder| builder.slowest_poll(NEVER));
    bench.queue.send(&2).await.unwrap();
    let other = bench.db.client().await;
    until("the later one to be archived", async || {
        let row = other.query_one("SELECT count(*) FROM vtq.q_archive", &[]).await.unwrap();
        row.get::<_, i64>(0) == 1
    })
    .await;

    bench.client.batch_execute("COMMIT").await.unwrap();

    archived(&bench, 2).await;
    worker.stop().await;
}

/// More of them than a read takes, so that what one look back leaves is found by the next, also while others go on.
#[tokio::test(flavor = "multi_thread")]
async fn large_batch_that_commits_late_is_not_passed_over_by_busy_workers() {
    let bench = Bench::new(QueueOptions::new()).await;
    let late = "BEGIN; SELECT count(vtq.send('q', '1')) FROM generate_series(1, 3000)";
    bench.client.batch_execute(late).await.unwrap();
    let workers = [(); 3].map(|()| bench.start(handler_fn(|_, _| async {}), |b| b.slowest_poll(NEVER)));
    let other = bench.db.client().await;
    let flow = tokio::spawn(async move {
        for _ in 0..100 {
            other.batch_execute("SELECT vtq.send('q', '2')").await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;

    bench.client.batch_execute("COMMIT").await.unwrap();
    flow.await.unwrap();

    archived(&bench, 3100).await;
    let mut done = 0;
    for worker in workers {
        done += worker.stop().await.done;
    }
    assert_eq!(done, 3100);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_listener_comes_back() {
    let bench = Bench::new(QueueOptions::new()).await;
    let worker = asleep(&bench).await;
    let events = worker.events.clone();

    let killed = bench
        .number(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> pg_backend_pid()",
        )
        .await;
    until("the listener to hear again", async || {
        events.count(|e| matches!(e, WorkerEvent::ListenerHears)) == 1
    })
    .await;
    bench.queue.send(&1).await.unwrap();

    archived(&bench, 1).await;
    until("the status to say that it listens", async || {
        wake_up(&bench).await.as_deref() == Some("listening")
    })
    .await;
    assert_eq!(killed, 1);
    assert_eq!(events.count(|e| matches!(e, WorkerEvent::ListenerDeaf { .. })), 1);
    worker.stop().await;
}

/// What `vtq status` shows of the one worker's wake-up.
async fn wake_up(bench: &Bench) -> Option<String> {
    let workers = bench.vtq.workers().await.unwrap();
    workers.into_iter().next().and_then(|worker| worker.wake_up)
}

#[tokio::test(flavor = "multi_thread")]
async fn deaf_listener_shows_in_the_status_and_the_work_goes_on() {
    let bench = Bench::new(QueueOptions::new()).await;
    let nobody =
        ConnectOptions::from_url("postgresql://postgres@127.0.0.1:1/postgres").unwrap().lazy().unwrap();
    let wake_up_at = WakeUp::ListenAt(nobody);
    let worker = bench.start(handler_fn(|_, _| async {}), |builder| builder.wake_up(wake_up_at));

    bench.queue.send(&1).await.unwrap();

    archived(&bench, 1).await;
    until("the status to say so", async || wake_up(&bench).await.as_deref() == Some("deaf")).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_only_polls_has_no_listener() {
    let bench = Bench::new(QueueOptions::new()).await;
    let worker = bench.start(handler_fn(|_, _| async {}), |builder| builder.wake_up(WakeUp::Poll));
    let events = worker.events.clone();
    until("the worker to sleep", async || events.count(|e| matches!(e, WorkerEvent::Asleep)) > 0).await;

    bench.queue.send(&1).await.unwrap();

    archived(&bench, 1).await;
    let listeners = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%LISTEN%' \
                     AND pid <> pg_backend_pid()";
    assert_eq!(bench.number(listeners).await, 0);
    assert_eq!(wake_up(&bench).await.as_deref(), Some("polling"));
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_queue_hands_out_nothing_until_it_is_resumed() {
    let bench = Bench::new(QueueOptions::new()).await;
    bench.queue.pause(Some("a deploy"), None).await.unwrap();
    bench.queue.send(&1).await.unwrap();
    let worker = asleep(&bench).await;
    assert_eq!(bench.number("SELECT read_ct::bigint FROM vtq.q").await, 0);

    bench.queue.resume().await.unwrap();

    archived(&bench, 1).await;
    worker.stop().await;
}

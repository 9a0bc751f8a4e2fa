//! Backends are killed, each at its turn and at random.

use std::time::Duration;

use tokio_postgres::Client;
use vtq::WorkerEvent;
use vtq_tests::wait_until;

use crate::clock::now;
use crate::harness::{RECOVERY, Stage, short_lease};
use crate::producer::{Load, send_one};
use crate::verdict::Doubles;

/// Ends the backends whose last statement looks like `pattern`. Answers how many.
async fn terminate(client: &Client, pattern: &str) -> i64 {
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE application_name = 'vtq' AND pid <> pg_backend_pid() AND query ~ $1";
    client.query_one(sql, &[&pattern]).await.unwrap().get(0)
}

/// What gives away the connections that fetch, settle and listen.
const PARTS: [&str; 3] = [
    "vtq\\.(\"_q\\.)?(read|sweep|_doze|_rise)",
    "vtq\\.(\"_q\\.)?(extend|ack|fail|_beat)",
    "LISTEN|pg_notify",
];

#[tokio::test(flavor = "multi_thread")]
async fn killed_backends_come_back() {
    let mut stage = Stage::new("backends killed", short_lease(5)).await;
    let url = stage.cluster.url();
    stage.work(&url);
    stage.work(&url);
    let producer = stage.produce(Load::default());
    let client = stage.client().await;
    stage.warm(50).await;

    let mut killed = [0; 3];
    for turn in 0..30 {
        stage.dice.wait(20, 250).await;
        // Each part in turn, so that none is left out, and then as the dice fall.
        let part = if turn < 3 { turn } else { stage.dice.below(3) as usize };
        killed[part] += terminate(&client, PARTS[part]).await;
    }
    stage.recovered(now()).await;

    stage.notes.push(format!("killed (fetch, settle, listen): {killed:?}"));
    assert!(killed.iter().all(|count| *count > 0), "each part was hit: {killed:?}");
    stage.verify(producer, Doubles::Never).await;
}

/// With a slow poll of half a minute, what comes sooner was heard.
#[tokio::test(flavor = "multi_thread")]
async fn killed_listener_hears_again() {
    let mut stage = Stage::new("listener killed", short_lease(5)).await;
    let url = stage.cluster.url();
    stage.work(&url);
    let events = stage.workers[0].events.clone();
    let client = stage.client().await;
    let asleep = || events.count(|event| matches!(event, WorkerEvent::Asleep));
    wait_until(RECOVERY, "the worker to sleep", async || asleep() > 0).await;

    let is_hit = async || terminate(&client, PARTS[2]).await > 0;
    wait_until(RECOVERY, "a listener to kill", is_hit).await;
    let hears = async || events.count(|event| matches!(event, WorkerEvent::ListenerHears)) > 0;
    wait_until(RECOVERY, "the listener to hear again", hears).await;
    let before = asleep();
    wait_until(RECOVERY, "the worker to sleep again", async || asleep() > before).await;
    let since = now();
    send_one(&client).await;
    stage.recovered(since).await;

    let took = Duration::from_micros(now() - since);
    assert!(took < Duration::from_secs(10), "woken after {took:?}, and the slow poll is 30 s");
    eprintln!("{}: woken after {took:.1?}", stage.name);
    assert_eq!(events.count(|event| matches!(event, WorkerEvent::ListenerDeaf { .. })), 1);
    for worker in stage.workers.drain(..) {
        worker.stop().await;
    }
}

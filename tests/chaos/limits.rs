//! A server that refuses or cuts short what it is asked: nothing turns into a hot loop.

use std::time::Duration;

use tokio_postgres::Client;
use vtq::WorkerEvent;
use vtq_tests::wait_until;

use crate::clock::now;
use crate::failover::synchronous_standby;
use crate::harness::{RECOVERY, Stage, short_lease};
use crate::producer::Load;
use crate::proxy::Proxy;
use crate::verdict::Doubles;

/// Connections and packets of one worker in a second, of which a hot loop would make thousands.
const MOST_CONNECTIONS: f64 = 10.0;
const MOST_PACKETS: f64 = 200.0;

/// What a worker asks a server that does not do what it is asked.
async fn rate(stage: &mut Stage, proxy: &Proxy, what: &str) {
    const SPAN: Duration = Duration::from_secs(5);
    let before = proxy.counts();
    tokio::time::sleep(SPAN).await;
    let after = proxy.counts();
    let per_second = |count: usize| count as f64 / SPAN.as_secs_f64();
    let (connections, packets) = (per_second(after.0 - before.0), per_second(after.1 - before.1));
    stage.notes.push(format!("{what}: {connections:.1} connections and {packets:.1} packets a second"));
    assert!(connections < MOST_CONNECTIONS, "{:?}", stage.notes);
    assert!(packets < MOST_PACKETS, "{:?}", stage.notes);
}

/// The address leads to a standby for a while: it lets the worker in, and refuses to write.
#[tokio::test(flavor = "multi_thread")]
async fn read_only_standby_is_left_for_the_primary() {
    let mut stage = Stage::new("read-only standby", short_lease(5)).await;
    let standby = synchronous_standby(&mut stage.cluster).await;
    let proxy = Proxy::start(stage.cluster.port()).await;
    let url = proxy.url(&stage.cluster);
    stage.work(&url);
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    proxy.redirect(standby.port());
    proxy.cut();
    let events = stage.workers[0].events.clone();
    let is_told = async || events.count(|event| matches!(event, WorkerEvent::DatabaseLost { .. })) > 0;
    wait_until(RECOVERY, "the worker to notice", is_told).await;
    rate(&mut stage, &proxy, "on the standby").await;
    // Connections to the standby stay open: the worker has to leave by itself.
    proxy.redirect(stage.cluster.port());
    stage.recovered(now()).await;

    // The standby is not needed any more; commits would wait for it.
    let told = events.losses().len();
    stage.notes.push(format!("told {told} times"));
    assert!(told <= 3, "one line for each change of state: {:?}", events.losses());
    stage.verify(producer, Doubles::Never).await;
}

async fn set_for_role(client: &Client, setting: &str) {
    client.batch_execute(&format!("ALTER ROLE limited SET {setting}")).await.unwrap();
}

/// A worker that logs in as a role with limits of its own, through a proxy that counts.
async fn limited(name: &'static str, settings: &[&str]) -> (Stage, Proxy, Client) {
    let mut stage = Stage::new(name, short_lease(5)).await;
    let client = stage.client().await;
    client.batch_execute("CREATE ROLE limited SUPERUSER LOGIN PASSWORD 'limited'").await.unwrap();
    for setting in settings {
        set_for_role(&client, setting).await;
    }
    let proxy = Proxy::start(stage.cluster.port()).await;
    let own = proxy.url(&stage.cluster);
    let (_, rest) = own.split_once('@').unwrap();
    stage.work(&format!("postgresql://limited:limited@{rest}"));
    (stage, proxy, client)
}

/// What no statement can keep to is no progress and no hot loop; once it is gone, all goes on.
#[tokio::test(flavor = "multi_thread")]
async fn statement_timeout_that_nothing_keeps_to_is_no_hot_loop() {
    let (mut stage, proxy, client) = limited("statement_timeout hit by all", &[]).await;
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    // A lock on the queue makes every statement as slow as its limit.
    set_for_role(&client, "statement_timeout = '5ms'").await;
    proxy.cut();
    let mut locker = stage.client().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE vtq.q IN ACCESS EXCLUSIVE MODE").await.unwrap();
    rate(&mut stage, &proxy, "at the limit").await;
    lock.rollback().await.unwrap();
    set_for_role(&client, "statement_timeout = 0").await;
    stage.recovered(now()).await;

    stage.verify(producer, Doubles::Never).await;
}

/// These limits leave room for progress, and the worker makes it.
#[tokio::test(flavor = "multi_thread")]
async fn tight_timeouts_of_the_role_leave_progress() {
    let settings = ["statement_timeout = '200ms'", "idle_in_transaction_session_timeout = '5ms'"];
    let (mut stage, proxy, client) = limited("tight timeouts", &settings).await;
    let producer = stage.produce(Load::default());
    stage.warm(50).await;
    stage.dice.wait(500, 1500).await;
    stage.recovered(now()).await;

    // Nothing to do, nothing to cut short: the listener alone is idle, and in no transaction.
    let sent = producer.finish().await;
    stage.settled(&client).await;
    rate(&mut stage, &proxy, "idle").await;
    stage.verify_sent(sent, Doubles::Never).await;
}

/// A session that is ended whenever it rests comes back without haste.
#[tokio::test(flavor = "multi_thread")]
async fn idle_session_timeout_is_no_hot_loop() {
    let (mut stage, proxy, client) =
        limited("idle_session_timeout", &["idle_session_timeout = '300ms'"]).await;
    let producer = stage.produce(Load::default());
    stage.warm(50).await;
    let sent = producer.finish().await;
    stage.settled(&client).await;
    rate(&mut stage, &proxy, "idle").await;

    stage.verify_sent(sent, Doubles::Never).await;
}

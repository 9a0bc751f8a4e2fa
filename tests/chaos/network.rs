//! The network loses packets without a word, swallows answers, or is slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vtq::{ConnectOptions, WorkerEvent};
use vtq_tests::wait_until;

use crate::clock::now;
use crate::harness::{RECOVERY, Stage, options, short_lease};
use crate::producer::{Load, send_one};
use crate::proxy::{Proxy, Role};
use crate::verdict::Doubles;

/// Two workers behind a proxy each.
async fn behind_proxies(name: &'static str) -> (Stage, [Proxy; 2]) {
    let mut stage = Stage::new(name, short_lease(8)).await;
    let proxies = [Proxy::start(stage.cluster.port()).await, Proxy::start(stage.cluster.port()).await];
    for proxy in &proxies {
        let url = proxy.url(&stage.cluster);
        stage.work(&url);
    }
    (stage, proxies)
}

/// The proxy acknowledges on TCP's level, so that neither keepalives nor the user timeout see anything: what is left
/// is the limit on a statement.
#[tokio::test(flavor = "multi_thread")]
async fn connection_that_forwards_nothing_is_given_up() {
    let (mut stage, proxies) = behind_proxies("packets dropped, one connection").await;
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    for role in [Role::Fetch, Role::Settle, Role::Listen, Role::Fetch] {
        stage.dice.wait(100, 700).await;
        // It may be about to be made anew.
        let is_hit = async || proxies[0].drop_packets(role) > 0;
        wait_until(RECOVERY, "a connection to drop the packets of", is_hit).await;
        // It may go on for a while with what it holds.
        let since = now() + 1_000_000;
        stage.recovered(since).await;
    }

    stage.verify(producer, Doubles::Never).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn network_that_forwards_nothing_is_survived() {
    let (mut stage, proxies) = behind_proxies("packets dropped, all connections").await;
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    for _ in 0..2 {
        stage.dice.wait(100, 700).await;
        let hit: Vec<usize> = proxies.iter().map(Proxy::drop_all_packets).collect();
        stage.notes.push(format!("connections hit: {hit:?}"));
        stage.recovered(now() + 1_000_000).await;
    }

    stage.verify(producer, Doubles::Never).await;
}

/// A worker that beats and never reads looks healthy, and is not.
#[tokio::test(flavor = "multi_thread")]
async fn fetch_without_answers_is_rebuilt_while_the_heartbeat_goes_on() {
    let mut stage = Stage::new("replies of the fetch swallowed", short_lease(8)).await;
    let proxy = Proxy::start(stage.cluster.port()).await;
    let url = proxy.url(&stage.cluster);
    stage.work(&url);
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    for _ in 0..3 {
        stage.dice.wait(100, 700).await;
        let is_hit = async || proxy.swallow_replies(Role::Fetch) > 0;
        wait_until(RECOVERY, "a connection to swallow the replies of", is_hit).await;
        // The read in hand is swallowed for the 2 s that a statement may take; what came before may still start.
        stage.recovered(now() + 1_000_000).await;
    }

    assert!(stage.workers[0].events.losses().len() >= 3, "each is told");
    stage.verify(producer, Doubles::Never).await;
}

/// 500 ms are added to every answer, and a loop is busy on every core; the jobs take longer than their lease.
#[tokio::test(flavor = "multi_thread")]
async fn slow_network_and_busy_cores_cost_no_lease() {
    let mut stage = Stage::alone("500 ms latency, busy cores", short_lease(3)).await;
    let proxy = Proxy::start(stage.cluster.port()).await;
    stage.concurrency = 60;
    let url = proxy.url(&stage.cluster);
    for _ in 0..2 {
        // The limits are the library's own: this network is slow, not broken.
        stage.work_with(ConnectOptions::from_url(&url).unwrap(), |builder| builder);
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let loops: Vec<_> = (0..cores)
        .map(|_| {
            let is_over = is_over.clone();
            std::thread::spawn(move || while !is_over.load(Ordering::Relaxed) {})
        })
        .collect();
    proxy.delay_replies(Duration::from_millis(500));
    let producer = stage.produce(Load { least: 200, takes_ms: (0, 8000), pause_ms: 100 });

    stage.verify(producer, Doubles::NoRedelivery).await;
    is_over.store(true, Ordering::Relaxed);
    loops.into_iter().for_each(|busy| busy.join().unwrap());
}

/// The listener of an idle worker is cut off without a FIN: nothing tells it, and the slow poll bounds the delay.
#[tokio::test(flavor = "multi_thread")]
async fn listener_without_a_network_delays_by_no_more_than_the_slow_poll() {
    let mut stage = Stage::new("packets dropped, idle listener", short_lease(8)).await;
    let proxy = Proxy::start(stage.cluster.port()).await;
    let poll = Duration::from_secs(3);
    stage.work_with(options(&proxy.url(&stage.cluster)), |builder| builder.slowest_poll(poll));
    let events = stage.workers[0].events.clone();
    let is_asleep = async || events.count(|event| matches!(event, WorkerEvent::Asleep)) > 0;
    wait_until(RECOVERY, "the worker to sleep", is_asleep).await;

    let is_up = async || proxy.drop_packets(Role::Listen) == 1;
    wait_until(RECOVERY, "a listener to be there", is_up).await;
    let client = stage.client().await;
    let since = now();
    send_one(&client).await;
    stage.recovered(since).await;

    let took = Duration::from_micros(now() - since);
    assert!(took < poll + Duration::from_secs(5), "started after {took:?} with a poll of {poll:?}");
    eprintln!("{}: started after {took:.1?}, slowest poll {poll:?}", stage.name);
    for worker in stage.workers.drain(..) {
        worker.stop().await;
    }
}

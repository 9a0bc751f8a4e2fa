//! The server restarts, stays away, is not there yet, or crashes.

use std::time::Duration;

use vtq_dev::{Cluster, StopMode};

use crate::clock::now;
use crate::harness::{Stage, short_lease};
use crate::producer::Load;
use crate::verdict::Doubles;

/// How long an outage lasts: as in the issue with `VTQ_CHAOS_LONG`, else as long as CI has time for.
fn outage() -> Duration {
    let is_long = std::env::var_os("VTQ_CHAOS_LONG").is_some_and(|value| value == "1");
    Duration::from_secs(if is_long { 90 } else { 5 })
}

/// With `fsync`, the first start after a crash syncs every file of a new cluster; on a busy disk that takes longer than
/// `vtq-dev` waits, and goes on from where it was.
fn start_after_crash(cluster: &mut Cluster) {
    for _ in 0..3 {
        match cluster.start_again() {
            Ok(()) => return,
            Err(error) if error.to_string().contains("not ready within") => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("the server does not come back: {}", cluster.log_tail(20));
}

async fn restarts(name: &'static str, mode: StopMode) {
    let mut stage = Stage::new(name, short_lease(5)).await;
    let url = stage.cluster.url();
    stage.work(&url);
    stage.work(&url);
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    for _ in 0..3 {
        stage.dice.wait(100, 1000).await;
        stage.cluster.restart(mode).unwrap();
        stage.recovered(now()).await;
    }

    let doubles = if mode == StopMode::Fast { Doubles::Never } else { Doubles::Explained };
    stage.verify(producer, doubles).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fast_restarts_lose_nothing() {
    restarts("restart -m fast", StopMode::Fast).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn immediate_restarts_lose_nothing() {
    restarts("restart -m immediate", StopMode::Immediate).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outage_is_waited_out() {
    let mut stage = Stage::new("server away", short_lease(5)).await;
    let url = stage.cluster.url();
    stage.work(&url);
    stage.work(&url);
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    stage.dice.wait(100, 1000).await;
    stage.cluster.stop(StopMode::Fast).unwrap();
    tokio::time::sleep(outage()).await;
    stage.cluster.start_again().unwrap();
    stage.recovered(now()).await;

    for worker in &stage.workers {
        assert_eq!(worker.events.losses().len(), 1, "an outage is told once");
    }
    stage.verify(producer, Doubles::Never).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_starts_before_its_database() {
    let mut stage = Stage::new("server not there at start", short_lease(5)).await;
    let url = stage.cluster.url();
    stage.cluster.stop(StopMode::Fast).unwrap();
    stage.work(&url);
    stage.work(&url);
    let producer = stage.produce(Load::default());

    stage.dice.wait(1000, 4000).await;
    stage.cluster.start_again().unwrap();
    stage.recovered(now()).await;

    stage.verify(producer, Doubles::Never).await;
}

/// `fsync` is on, and the load is committed as always; the workers' claims do not wait for the disk.
#[tokio::test(flavor = "multi_thread")]
async fn crashes_lose_no_acknowledged_send() {
    let mut stage = Stage::with("crash, durable", short_lease(5), |builder| builder.durable()).await;
    let url = stage.cluster.url();
    stage.work(&url);
    stage.work(&url);
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    for turn in 0..3 {
        stage.dice.wait(300, 1500).await;
        match turn {
            0 => stage.cluster.kill().unwrap(),
            _ => stage.cluster.stop(StopMode::Immediate).unwrap(),
        }
        start_after_crash(&mut stage.cluster);
        stage.recovered(now()).await;
    }

    stage.verify(producer, Doubles::Explained).await;
}

//! The server restarts, stays away, is not there yet, or crashes.

use std::time::Duration;

use vtq_dev::StopMode;

use crate::harness::{Stage, short_lease};
use crate::producer::Load;
use crate::runs::now;
use crate::verdict::Doubles;

/// How long an outage lasts: as in the issue with `VTQ_CHAOS_LONG`, else as long as CI has time for.
fn outage() -> Duration {
    let is_long = std::env::var_os("VTQ_CHAOS_LONG").is_some_and(|value| value == "1");
    Duration::from_secs(if is_long { 90 } else { 5 })
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

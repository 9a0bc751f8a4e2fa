//! Worker processes are killed, and stopped for longer than their leases last.

use std::time::Duration;

use nix::sys::signal::Signal;
use vtq_tests::wait_until;

use crate::child::Child;
use crate::harness::{RECOVERY, Stage, short_lease};
use crate::producer::Load;
use crate::verdict::Doubles;

#[tokio::test(flavor = "multi_thread")]
async fn killed_workers_lose_nothing() {
    let mut stage = Stage::new("workers killed", short_lease(2)).await;
    let mut children = [Child::start(&stage), Child::start(&stage)];
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    for _ in 0..10 {
        stage.dice.wait(200, 900).await;
        let place = stage.dice.below(2) as usize;
        let child = std::mem::replace(&mut children[place], Child::start(&stage));
        child.kill(&stage.runs);
    }

    let client = stage.client().await;
    let sent = producer.finish().await;
    stage.settled(&client).await;
    for child in children {
        child.stop();
    }
    stage.notes.push("10 kills".into());
    stage.verify_sent(sent, Doubles::Never).await;
}

/// Its machine slept, or swapped for too long: what it held is with somebody else when it wakes up.
#[tokio::test(flavor = "multi_thread")]
async fn worker_that_slept_gives_up_what_it_lost() {
    let mut stage = Stage::new("worker stopped (SIGSTOP)", short_lease(1)).await;
    // Few: what a worker leaves behind may have killed it, and runs alone.
    stage.concurrency = 4;
    let child = Child::start(&stage);
    let producer = stage.produce(Load { least: 12, takes_ms: (6000, 500), pause_ms: 2000 });
    let has_begun = async || stage.runs.begun_since(child.number, 0) == 4;
    wait_until(RECOVERY, "the process to be busy", has_begun).await;
    let url = stage.cluster.url();

    child.signal(Signal::SIGSTOP);
    // Longer than the leases, so that the next worker finds them lapsed; they are the first in line.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    stage.work(&url);
    stage.warm(5).await;
    child.signal(Signal::SIGCONT);

    let client = stage.client().await;
    let sent = producer.finish().await;
    stage.settled(&client).await;
    let told = child.stop();
    stage.notes.push(format!("the stopped one: {told:?}"));
    assert!(told.lost > 0, "it learns that its leases are gone: {told:?}");
    // On a slow machine a run may have ended before its handler could be told.
    assert!(told.cancelled as u64 + told.late > 0, "and its handlers do: {told:?}");
    stage.verify_sent(sent, Doubles::Explained).await;
}

//! Signals: what is drained, what is given back, what is killed, and what the exit code says.

use std::fs;

use nix::sys::signal::Signal;
use vtq_tests::{own_cluster, wait_until};

use crate::worker::{LIMIT, Worker, World, wait_for_end};

/// Of ten messages, the numbers that are done, ready with no attempt spent, and something else.
async fn counts(world: &World) -> (i64, i64, i64) {
    let done = world.count("vtq.q_archive").await;
    let ready = world.count("vtq.q WHERE vt <= clock_timestamp() AND read_ct = refunded_ct").await;
    (done, ready, 10 - done - ready)
}

async fn ten_messages() -> World {
    let world = World::new().await;
    for n in 0..10 {
        world.send(&n.to_string()).await;
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_running_commands_finish_and_gives_back_the_rest() {
    let world = ten_messages().await;
    // The heartbeat has to go on for longer than the visibility timeout.
    let worker =
        world.start(&["--exec", "echo $$ >> pids; until [ -e go ]; do sleep 0.02; done", "--vt", "1s"]);
    world.wait_for_words("pids", 2).await;

    worker.signal(Signal::SIGTERM);

    wait_until(LIMIT, "8 messages that are ready", async || counts(&world).await == (0, 8, 2)).await;
    worker.says("SIGTERM: stopping").await;
    fs::write(world.path("go"), "").unwrap();
    let ended = worker.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(counts(&world).await, (2, 8, 0));
    assert_eq!(world.words("pids").len(), 2);
    assert!(ended.stderr.contains("stopped: 2 done, 0 retried"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_timeout_gives_back_what_runs_and_exits_with_3() {
    let world = ten_messages().await;
    let worker =
        world.start(&["--exec", "sleep 1000 & echo $$ $! >> pids; wait", "--drain-timeout", "200ms"]);
    let pids = world.wait_for_words("pids", 4).await;

    worker.signal(Signal::SIGINT);

    let ended = worker.ended().await;
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    for pid in pids {
        wait_for_end(&pid).await;
    }
    assert_eq!(counts(&world).await, (0, 10, 0));
    assert_eq!(world.count("vtq.q_attempts WHERE outcome <> 'released'").await, 0);
    assert!(ended.stderr.contains("2 interrupted"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_with_0_after_sigterm_is_not_taken_for_done() {
    let world = World::new().await;
    let id = world.send("1").await;
    let command = "trap 'exit 0' TERM; echo $$ > pid; while :; do sleep 0.02; done";
    let worker = world.start(&["--exec", command, "--drain-timeout", "0"]);
    world.wait_for_words("pid", 1).await;

    worker.signal(Signal::SIGTERM);

    assert_eq!(worker.ended().await.code, Some(3));
    world.assert_due(id, -60, 0).await;
    assert_eq!(world.attempt(id).await["outcome"], "released");
}

#[tokio::test(flavor = "multi_thread")]
async fn second_signal_leaves_at_once_and_takes_the_commands_along() {
    for (kind, command) in [
        ("--exec", "trap '' TERM; sleep 1000 & echo $$ $! >> pids; wait"),
        ("--pipe", "trap '' TERM; sleep 1000 & echo $$ $! >> pids; wait"),
    ] {
        let world = ten_messages().await;
        let worker = world.start(&[kind, command]);
        let pids = world.wait_for_words("pids", 4).await;

        worker.signal(Signal::SIGTERM);
        worker.says("SIGTERM: stopping").await;
        worker.signal(Signal::SIGTERM);

        assert_eq!(worker.ended().await.code, Some(130), "{kind}");
        for pid in pids {
            wait_for_end(&pid).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_signal_ends_an_idle_worker_with_0() {
    let world = World::new().await;
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let worker = world.start(&["--exec", "true"]);
        worker.says("serves q: 2 by --exec").await;

        worker.signal(signal);

        let ended = worker.ended().await;
        assert_eq!(ended.code, Some(0), "{signal}: {}", ended.stderr);
        assert!(ended.stderr.contains("stopped: 0 done"), "{}", ended.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_that_is_ignored_stays_so() {
    let world = World::new().await;
    let vtq = env!("CARGO_BIN_EXE_vtq");
    let mut nohup = std::process::Command::new("sh");
    nohup.args(["-c", &format!("trap '' HUP; exec '{vtq}' start --queues q --exec true")]);
    let worker = Worker::start(nohup.env("DATABASE_URL", world.db.url()));
    worker.says("serves q: 10 by --exec").await;

    worker.signal(Signal::SIGHUP);
    worker.signal(Signal::SIGTERM);

    // 130 if the first had counted.
    assert_eq!(worker.ended().await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_waits_for_a_database_that_is_away_and_can_be_stopped_meanwhile() {
    let mut cluster = own_cluster(|builder| builder);
    vtq_tests::install(&cluster.url()).await;
    let world = World::new().await;
    cluster.stop(vtq_dev::StopMode::Fast).unwrap();
    let start = || {
        Worker::start(world.command(&["--queues", "q", "--exec", "true"]).env("DATABASE_URL", cluster.url()))
    };

    let worker = start();
    worker.says("the database is away").await;
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.ended().await.code, Some(0));

    let worker = start();
    worker.says("the database is away").await;
    cluster.start_again().unwrap();
    // The queue is missing in that database: it was asked.
    let ended = worker.ended().await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("queue \"q\" does not exist"), "{}", ended.stderr);
}

//! Runs that are told to end early: by their time limit, and because their message was cancelled.

use nix::sys::signal::Signal;
use vtq_tests::wait_until;

use crate::worker::{LIMIT, World, wait_for_end};

#[tokio::test(flavor = "multi_thread")]
async fn timed_out_command_may_tidy_up() {
    let world = World::with_options(r#"{"timeout": 1}"#).await;
    let id = world.send("1").await;

    // The shell that vtq started dies of SIGTERM at once; what it runs takes its time and exits with 0.
    let inner =
        "trap 'sleep 0.2; echo tidy > tidied; exit 0' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let ended = world.once(&["--exec", &format!("sh -c \"{}\"; true", inner.replace('$', "\\$"))]).await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(world.words("tidied"), ["tidy"]);
    wait_for_end(&world.words("pid")[0]).await;
    let attempt = world.attempt(id).await;
    assert_eq!(attempt["outcome"], "timed_out");
    assert!(ended.stderr.contains(&format!("q/{id} attempt 1: timed out, retry")), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn group_that_ignores_sigterm_is_killed_after_the_grace() {
    let world = World::with_options(r#"{"timeout": 1}"#).await;
    let id = world.send("1").await;

    // A signal that is ignored is so for the grandchild, too.
    world.once(&["--exec", "trap '' TERM; sleep 1000 & echo $$ $! > pids; wait", "--grace", "200ms"]).await;

    let pids = world.words("pids");
    assert_eq!(pids.len(), 2, "{pids:?}");
    for pid in pids {
        wait_for_end(&pid).await;
    }
    assert_eq!(world.attempt(id).await["outcome"], "timed_out");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_message_stops_its_command() {
    let world = World::new().await;
    let id = world.send("1").await;
    let worker = world.start(&["--exec", "echo $$ > pid; sleep 1000", "--vt", "2s"]);
    let pid = world.wait_for_words("pid", 1).await.remove(0);

    let cancelled = world.client.execute("SELECT vtq.cancel('q', $1)", &[&id]).await.unwrap();

    assert_eq!(cancelled, 1);
    wait_for_end(&pid).await;
    worker.says(&format!("q/{id}: the lease is lost")).await;
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.ended().await.code, Some(0));
    assert_eq!(world.fate(id).await, "gone");
    assert_eq!(world.attempt(id).await["outcome"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn timed_out_child_is_replaced() {
    let world = World::with_options(r#"{"timeout": 2}"#).await;
    let slow = world.send("\"slow\"").await;
    let pipe = r#"echo $$ >> pids; while read -r line; do
        case $line in *'"slow"'*) sleep 1000;; esac
        echo '{"outcome":"done"}'
    done"#;
    let worker = world.start(&["--pipe", pipe, "--grace", "200ms"]);
    let first = world.wait_for_words("pids", 1).await.remove(0);

    wait_for_end(&first).await;
    let quick = world.send("\"quick\"").await;

    wait_until(LIMIT, "the quick message", async || world.fate(quick).await == "done").await;
    assert_eq!(world.words("pids").len(), 2);
    worker.signal(Signal::SIGTERM);
    worker.ended().await;
    assert_eq!(world.attempt(slow).await["outcome"], "timed_out");
    wait_for_end(&world.words("pids")[1]).await;
}

//! `--exec`: exit codes, what a command gets, and what becomes of what it says.

use std::fs;

use crate::worker::{Worker, World, wait_for_end};

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_say_what_becomes_of_a_message() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for code in [0, 75, 65, 100, 3, 127] {
        ids.push(world.send(&code.to_string()).await);
    }
    let [done, deferred, undecodable, permanent, failed, missing] = ids[..] else { panic!() };

    let ended =
        world.once(&["--exec", "read code; echo exit with $code >&2; exit $code", "--defer", "1h"]).await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(world.fate(done).await, "done");
    assert!(world.attempts(done).await.is_empty());

    world.assert_due(deferred, 3500, 3600).await;
    let attempt = world.attempt(deferred).await;
    assert_eq!((&attempt["outcome"], &attempt["attempt"]), (&"deferred".into(), &1.into()));

    assert_eq!(world.fate(undecodable).await, "dead");
    assert_eq!(world.attempt(undecodable).await["outcome"], "undecodable");

    assert_eq!(world.fate(permanent).await, "dead");
    assert_eq!(world.attempt(permanent).await["outcome"], "permanent");

    world.assert_due(failed, 1, 6).await;
    let attempt = world.attempt(failed).await;
    assert_eq!(attempt["outcome"], "failed");
    assert_eq!(attempt["error_class"], "exit 3");
    assert_eq!(attempt["error_code"], "exit-3");
    assert_eq!(attempt["error_message"], "exit with 3");
    assert!(attempt["worker"].is_string(), "{attempt}");

    assert_eq!(world.attempt(missing).await["error_class"], "exit 127");
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_is_a_failure_with_its_name() {
    let world = World::new().await;
    let id = world.send("1").await;

    world.once(&["--exec", "kill -KILL $$"]).await;

    let attempt = world.attempt(id).await;
    assert_eq!(attempt["outcome"], "failed");
    assert_eq!(attempt["error_class"], "signal 9 (SIGKILL)");
    assert_eq!(attempt["error_code"], "SIGKILL");
}

#[tokio::test(flavor = "multi_thread")]
async fn command_gets_the_message_and_what_goes_with_it() {
    let world = World::new().await;
    let body = r#"{"n": 12345678901234567890.120, "text": "é\n\"x\""}"#;
    let id = world.send_with(body, Some(r#"{"trace": "ü"}"#)).await;
    let bare = world.send("null").await;

    world.once(&[
        "--exec",
        r#"cat > $VTQ_MSG_ID.body; echo "$VTQ_QUEUE $VTQ_READ_CT $VTQ_ATTEMPT $VTQ_HEADERS" > $VTQ_MSG_ID.env"#,
    ])
    .await;

    let read = |id: i64, what: &str| fs::read_to_string(world.path(&format!("{id}.{what}"))).unwrap();
    assert_eq!(read(id, "body"), format!("{body}\n"));
    assert_eq!(read(id, "env"), "q 1 1 {\"trace\": \"ü\"}\n");
    assert_eq!(read(bare, "body"), "null\n");
    assert_eq!(read(bare, "env"), "q 1 1 {}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn command_need_not_read_its_message() {
    let world = World::new().await;
    // More than a pipe holds.
    let id = world.send(&format!("\"{}\"", "x".repeat(1_000_000))).await;

    let ended = world.once(&["--exec", "true"]).await;

    assert_eq!(ended.code, Some(0));
    assert_eq!(world.fate(id).await, "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn end_of_a_long_stderr_is_kept() {
    let world = World::new().await;
    let id = world.send("1").await;
    let command =
        r"head -c 3000000 /dev/zero | tr '\0' x >&2; printf '\nbad \377\000 last words\n' >&2; exit 1";

    world.once(&["--exec", command, "--output", "hide"]).await;

    let attempt = world.attempt(id).await;
    let message = attempt["error_message"].as_str().unwrap();
    assert!(
        message.starts_with("…x") && message.ends_with("x\nbad \u{FFFD}\u{FFFD} last words"),
        "{message}"
    );
    assert_eq!(message.chars().count(), 1000);
    let detail = attempt["error_detail"].as_str().unwrap();
    assert!(detail.ends_with("last words") && (4000..4200).contains(&detail.len()), "{}", detail.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_failure_says_so() {
    let world = World::new().await;
    let id = world.send("1").await;

    world.once(&["--exec", "exit 1"]).await;

    let message = world.attempt(id).await["error_message"].clone();
    assert_eq!(message, "the command ended with exit 1 and wrote nothing to stderr");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_leaves_running_ends_with_it() {
    let world = World::new().await;
    let id = world.send("1").await;

    // It holds stdout and stderr open, too.
    world.once(&["--exec", "sleep 1000 & echo $! > pid"]).await;

    wait_for_end(&world.words("pid")[0]).await;
    assert_eq!(world.fate(id).await, "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn process_outside_the_group_does_not_hold_up_the_message() {
    let world = World::new().await;
    let id = world.send("1").await;

    // Its stderr stays open as long as it lives, which is for as long as the folder is there.
    let script = "setsid sh -c 'while [ -d . ] && [ -e stay ]; do sleep 0.05; done' & exit 3";
    fs::write(world.path("stay"), "").unwrap();
    world.start(&["--exec", script]).says("attempt 1: exit 3, retry").await;
    fs::remove_file(world.path("stay")).unwrap();

    assert_eq!(world.attempt(id).await["error_class"], "exit 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_too_long_for_the_environment_fail_for_good() {
    let world = World::new().await;
    let id = world.send_with("1", Some(&format!("{{\"a\": \"{}\"}}", "x".repeat(200_000)))).await;

    world.once(&["--exec", "true"]).await;

    assert_eq!(world.fate(id).await, "dead");
    assert_eq!(world.attempt(id).await["error_class"], "headers too long");
}

#[tokio::test(flavor = "multi_thread")]
async fn command_that_cannot_be_started_costs_no_attempt() {
    let world = World::new().await;
    let id = world.send("1").await;

    // No shell on this path.
    let mut command = world.command(&["--queues", "q", "--exec", "true", "--once"]);
    let ended = Worker::start(command.env("PATH", "/nowhere")).ended().await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot be started"), "{}", ended.stderr);
    world.assert_due(id, 1, 10).await;
    assert_eq!(world.attempt(id).await["outcome"], "deferred");
}

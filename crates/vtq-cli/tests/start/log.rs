//! What is on standard error and standard output, and what is not.

use serde_json::Value;

use crate::worker::{Worker, World};

#[tokio::test(flavor = "multi_thread")]
async fn what_commands_print_is_shown_or_hidden() {
    let world = World::new().await;
    let command = "echo to stdout; echo to stderr >&2";

    world.send("1").await;
    let shown = world.once(&["--exec", command]).await;
    world.send("2").await;
    let hidden = world.once(&["--exec", command, "--output", "hide"]).await;

    assert_eq!(shown.stdout, "to stdout\n");
    assert!(shown.stderr.lines().any(|line| line == "to stderr"), "{}", shown.stderr);
    assert_eq!(hidden.stdout, "");
    assert!(!hidden.stderr.contains("to stderr"), "{}", hidden.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_log_is_an_object_a_line() {
    let world = World::new().await;
    let id = world.send("1").await;

    let ended = world.once(&["--exec", "exit 3", "--log", "json", "-v"]).await;

    let lines: Vec<Value> =
        ended.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let find = |event: &str| lines.iter().find(|line| line["event"] == event).expect(event);
    assert!(find("started")["worker"].is_string());
    assert_eq!(find("run_started")["msg_id"], id);
    let settled = find("settled");
    assert_eq!(settled["level"], "warn");
    assert_eq!((&settled["queue"], &settled["msg_id"]), (&"q".into(), &id.into()));
    assert_eq!((&settled["read_ct"], &settled["attempt"]), (&1.into(), &1.into()));
    assert_eq!((&settled["ending"], &settled["class"]), (&"retry".into(), &"exit 3".into()));
    assert_eq!(find("stopped")["retried"], 1);
    assert!(lines.iter().all(|line| line["time"].is_string() && line["text"].is_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn quiet_worker_says_only_what_is_wrong() {
    let world = World::new().await;
    let fine = world.send("0").await;
    let bad = world.send("1").await;

    let ended = world.once(&["--exec", "read code; exit $code", "-q"]).await;

    assert!(ended.stderr.contains(&format!("q/{bad} attempt 1: exit 1, retry")), "{}", ended.stderr);
    assert!(!ended.stderr.contains(&format!("q/{fine} ")), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_holds_no_message_no_header_and_no_error_text() {
    let world = World::new().await;
    let fails = "cat >&2; echo $VTQ_HEADERS >&2; exit 1";
    let answers = r#"while read -r line; do echo '{"outcome":"retry","error":"S3CRET"}'; done"#;
    for handler in
        [["--exec", fails], ["--pipe", answers], ["--pipe", "while read -r line; do echo S3CRET; done"]]
    {
        world.send_with("{\"token\": \"S3CRET\"}", Some("{\"key\": \"S3CRET\"}")).await;

        let args = ["--queues", "q", "--once", "--output", "hide", "-vvv", handler[0], handler[1]];
        let mut command = world.command(&args);
        let ended = Worker::start(command.env("RUST_LOG", "trace")).ended().await;

        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("S3CRET"), "{handler:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{handler:?}");
    }
}

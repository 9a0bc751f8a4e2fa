//! `vtq schedule`.

use serde_json::json;

use crate::support::Cli;

const ADD: [&str; 12] = [
    "schedule",
    "add",
    "nightly",
    "--cron",
    "30 2 * * *",
    "--timezone",
    "Europe/Berlin",
    "--queue",
    "orders",
    "--message",
    r#"{"n": 1}"#,
    "--json",
];

/// [`ADD`] with more arguments.
fn add(more: &[&'static str]) -> Vec<&'static str> {
    [&ADD[..11], more].concat()
}

#[tokio::test]
async fn adding_says_when_the_next_tick_is_and_twice_is_as_once() {
    let cli = Cli::with_queues(&["orders"]).await;

    let first = cli.run(&ADD).json();
    let second = cli.run(&ADD).json();

    assert_eq!((&first["created"], &second["created"]), (&json!(true), &json!(false)));
    assert_eq!(first["next_at"], second["next_at"]);
    let next = first["next_at"].as_str().unwrap().replace(".000000", "");
    // Half past two in Berlin, in winter, in summer, or when that time is left out.
    assert!(["T01:30:00Z", "T00:30:00Z", "T01:00:00Z"].contains(&&next[10..]), "{next}");
    assert_eq!(cli.run(&add(&[])).done(), format!("schedule `nightly` changed: next tick {next}"));
}

#[tokio::test]
async fn every_option_reaches_the_schedule() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&add(&["--missed", "all", "--cap", "7", "--grace", "2m", "-H", "a=b", "--delay", "5s"])).done();

    let listed = cli.run(&["schedule", "list", "--json", "--payload"]).json();

    let expected = json!({
        "schedule": "nightly", "state": "active", "cron": "30 2 * * *", "timezone": "Europe/Berlin",
        "queue": "orders", "next_at": listed[0]["next_at"], "last_tick_at": null, "last_sent_at": null,
        "last_msg_id": null, "sent": 0, "skipped": 0, "missed": "all", "missed_cap": 7, "grace_ms": 120_000,
        "paused_until": null, "pause_reason": null, "error": null, "error_at": null, "headers": {"a": "b"},
        "message": {"n": 1},
    });
    assert_eq!(listed, json!([expected]));
    assert_eq!(cli.sql("SELECT delay FROM vtq._schedule").await, "00:00:05");
    let quiet = cli.run(&["schedule", "list", "--json"]).json();
    assert_eq!((quiet[0].get("message"), quiet[0].get("headers")), (None, None));
}

#[tokio::test]
async fn options_of_the_messages_reach_them() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&add(&["--priority", "0", "--max-attempts", "2", "--expires-in", "1h"])).done();

    assert_eq!(cli.run(&["schedule", "run", "nightly"]).done(), "1");

    let sent =
        "SELECT concat_ws(' ', priority, max_attempts, expires_at - enqueued_at, message) FROM vtq.orders";
    assert_eq!(cli.sql(sent).await, r#"0 2 01:00:00 {"n": 1}"#);
    assert_eq!(cli.run(&["schedule", "run", "nightly", "--json"]).json()["msg_id"], 2);
}

#[tokio::test]
async fn a_message_may_come_from_standard_input() {
    let cli = Cli::with_queues(&["orders"]).await;
    let add = ["schedule", "add", "s", "--cron", "@daily", "--queue", "orders", "--message", "-", "--json"];

    assert_eq!(cli.run_on(&add, b"{\"secret\": 1}\n").json()["created"], true);

    assert_eq!(cli.sql("SELECT message FROM vtq._schedule").await, r#"{"secret": 1}"#);
}

#[tokio::test]
async fn the_list_is_a_table_that_says_why_one_does_not_send() {
    let cli = Cli::with_queues(&["orders"]).await;
    assert!(cli.run(&["schedule", "list"]).nothing().starts_with("there are no schedules"));
    assert_eq!(cli.run(&["schedule", "list", "--json"]).json(), json!([]));
    cli.run(&ADD).done();
    cli.sql("SELECT vtq.schedule_add('raw', '0 * * * *', 'orders', '1')").await;
    cli.sql("UPDATE vtq._schedule SET error = 'no luck', error_at = now() WHERE name = 'raw'").await;
    cli.run(&["schedule", "pause", "nightly", "--reason", "moving house"]).done();

    let table = cli.run(&["schedule", "list"]).done();

    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[0].starts_with("SCHEDULE  CRON"), "{table}");
    assert!(lines[1].starts_with("nightly") && lines[1].ends_with("paused   moving house"), "{table}");
    assert!(lines[2].starts_with("raw") && lines[2].ends_with("failing  no luck"), "{table}");
    assert!(!table.contains("\"n\""), "{table}");
}

#[tokio::test]
async fn pausing_resuming_and_removing_say_what_was() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&ADD).done();
    let run = |verb| cli.run(&["schedule", verb, "nightly"]);

    assert_eq!(run("resume").nothing(), "schedule `nightly` was not paused");
    assert_eq!(run("pause").done(), "schedule `nightly` is paused");
    assert_eq!(run("pause").done(), "schedule `nightly` is paused; it was paused before");
    let paused = cli.run(&["schedule", "pause", "nightly", "--for", "1h", "--json"]).json();
    assert!(paused["paused_until"].is_string(), "{paused}");
    assert_eq!(run("resume").done(), "schedule `nightly` is running again");
    assert_eq!(run("remove").done(), "schedule `nightly` removed");
    assert_eq!(run("remove").nothing(), "schedule `nightly` does not exist");
    for verb in ["pause", "resume", "run"] {
        assert_eq!(run(verb).failed(), "schedule \"nightly\" does not exist");
    }
}

#[tokio::test]
async fn what_cannot_be_a_schedule_is_refused_in_one_sentence() {
    let cli = Cli::with_queues(&["orders"]).await;
    let refusal = |place: usize, value: &'static str| {
        let mut args = ADD;
        args[place] = value;
        cli.run(&args).failed()
    };

    assert!(refusal(4, "61 * * * *").starts_with("cron \"61 * * * *\" is not allowed: "));
    assert_eq!(refusal(4, "0 0 30 2 *"), "cron \"0 0 30 2 *\" is not allowed: it has no tick at all");
    assert_eq!(
        refusal(6, "Mars"),
        "timezone \"Mars\" is not known: give a name of the IANA database, such as Europe/Berlin or UTC"
    );
    assert!(refusal(8, "nosuch").contains("queue \"nosuch\" does not exist"));
    assert!(refusal(10, "hello").ends_with("a text is written with quotes of its own: '\"hello\"'"));
    assert!(cli.run(&add(&["--cap", "3"])).failed().starts_with("--cap goes with --missed all"));
    assert!(cli.run(&add(&["-H", "s3cret"])).failed().starts_with("a --header has no value"));
    assert!(cli.run(&add(&["--missed", "some"])).failed().contains("skip, once, all"));
    assert_eq!(cli.sql("SELECT count(*) FROM vtq._schedule").await, "0");
}

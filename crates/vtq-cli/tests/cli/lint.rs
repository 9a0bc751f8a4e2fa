//! `vtq lint` and `vtq backoff`.

use serde_json::json;

use crate::support::{Cli, bare, run};

#[tokio::test]
async fn lint_is_content_with_the_defaults_and_says_how_long_death_takes() {
    let cli = Cli::with_queues(&["mails", "orders"]).await;

    let text = cli.run(&["lint"]).done();
    let json = cli.run(&["lint", "orders", "--json"]).json();

    assert!(text.lines().all(|line| !line.contains("warning")), "{text}");
    assert!(text.contains("mails") && text.contains("at the worst after 01:16:26.25"), "{text}");
    assert_eq!(json[0]["queue"], "orders");
    assert_eq!((&json[0]["waits_expected_ms"], &json[0]["worst_ms"]), (&json!(75_000), &json!(4_586_250)));
    assert_eq!(json[0]["findings"][0]["severity"], "note");
}

#[tokio::test]
async fn lint_exits_with_1_for_a_warning_and_2_for_an_error() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&["queue", "set", "orders", "--timeout", "none"]).done();
    let warned = cli.run(&["lint", "orders"]);
    warned.expect(1);
    assert!(
        warned.stdout().contains("warning") && warned.stdout().contains("timeout is none"),
        "{}",
        warned.stdout()
    );

    // As a queue of an older vtq may be.
    cli.sql(r#"UPDATE vtq._queue SET options = '{"backoff": {"kind": "list", "delays": [1, 2, 3, 4, 5]}}'"#)
        .await;
    let wrong = cli.run(&["lint", "--json"]);

    wrong.expect(2);
    assert_eq!(wrong.json()[0]["findings"][0]["severity"], "error");
    assert!(cli.run(&["lint", "nobody"]).failed().contains("does not exist"));
}

#[tokio::test]
async fn lint_compares_with_what_it_is_told() {
    let cli = Cli::with_queues(&["orders"]).await;

    let told = cli.run(&["lint", "orders", "--drain", "1m", "--deadline", "30s", "--json"]);

    told.expect(1);
    let says = told.json()[0]["findings"].to_string();
    assert!(says.contains("the drain timeout of the workers is 00:01:00"), "{says}");
    assert!(says.contains("and the deadline is 00:00:30"), "{says}");
}

#[tokio::test]
async fn lint_without_queues_has_nothing_to_say() {
    let cli = Cli::with_queues(&[]).await;

    assert!(cli.run(&["lint"]).nothing().starts_with("there are no queues"));
}

#[tokio::test]
async fn contradictory_options_are_refused_by_queue_create() {
    let cli = Cli::with_queues(&[]).await;

    let refusal = cli
        .run(&[
            "queue",
            "create",
            "orders",
            "--max-attempts",
            "1",
            "--backoff",
            r#"{"kind": "list", "delays": [9]}"#,
        ])
        .failed();

    assert!(refusal.contains("backoff lists 1 delays and max_attempts is 1"), "{refusal}");
}

#[tokio::test]
async fn backoff_simulates_the_policy_of_a_queue() {
    let cli = Cli::with_queues(&[]).await;
    cli.run(&["queue", "create", "orders", "--backoff-base", "2s", "--jitter", "none"]).done();
    let line = ["backoff", "orders", "--failures", "3", "--runs", "50", "--messages", "7000"];

    let text = cli.run(&line).done();
    let json = cli.run(&[&line[..], &["--json"]].concat()).json();

    assert!(
        text.contains("An outage that 7000 messages share brings back at the most 7000 a second"),
        "{text}"
    );
    let waits: Vec<_> =
        text.lines().skip(1).take(3).map(|row| row.split_whitespace().nth(3).unwrap()).collect();
    assert_eq!(waits, ["2.00s", "4.00s", "8.00s"], "{text}");
    assert_eq!(
        (&json["runs"], &json["messages"], &json["policy"]["base"]),
        (&json!(50), &json!(7000), &json!(2))
    );
    assert_eq!(json["failures"][2]["since_p50_ms"], 14_000);
    assert_eq!(json["failures"][2]["peak_100ms"], 7_000);
}

#[tokio::test]
async fn backoff_simulates_a_policy_that_no_queue_has() {
    let cli = Cli::with_queues(&[]).await;
    let policy = r#"{"kind": "fixed", "base": 60, "jitter": "full"}"#;

    let json =
        cli.run(&["backoff", "--policy", policy, "--failures", "1", "--runs", "3000", "--json"]).json();

    let failure = &json["failures"][0];
    assert!(failure["wait_p99_ms"].as_u64().unwrap() > 57_000, "{json}");
    assert!((50..150).contains(&failure["peak_1s"].as_u64().unwrap()), "3000 over a minute: {json}");
    let wrong = cli.run(&["backoff", "--policy", r#"{"base": 0}"#]).failed();
    assert!(wrong.contains(r#"backoff key "base" is 0"#), "{wrong}");
    assert!(cli.run(&["backoff", "--policy", "[1]"]).failed().contains("--policy is not a JSON object"));
    assert!(run(bare(&["backoff"])).failed().contains("<QUEUE>"));
}

//! `vtq migrate`, `vtq queue`, `vtq pause`, `vtq resume`.

use serde_json::json;

use crate::support::Cli;

#[tokio::test]
async fn migrating_twice_is_as_once() {
    let cli = Cli::empty().await;

    let refusal = cli.run(&["queues"]).failed();
    assert!(refusal.contains("run `vtq migrate`"), "{refusal}");
    assert_eq!(cli.run(&["migrate", "--dry-run", "--json"]).json()["up_to_date"], false);
    assert_eq!(cli.sql("SELECT to_regnamespace('vtq') IS NULL").await, "t");

    let first = cli.run(&["migrate", "--json"]).json();
    assert_eq!(first["applied"][0]["name"], "create_catalogue");
    assert_eq!(first["installed_functions"], true);

    assert!(cli.run(&["migrate"]).done().ends_with("was up to date"));
    assert!(cli.run(&["migrate", "--dry-run"]).done().ends_with("is up to date"));
    assert_eq!(cli.run(&["migrate", "--json"]).json()["applied"], json!([]));
}

#[tokio::test]
async fn the_printed_sql_installs_vtq() {
    let cli = Cli::empty().await;
    let sql = cli.run(&["migrate", "--sql"]).done();

    cli.db.client().await.batch_execute(&sql).await.unwrap();

    assert!(cli.run(&["migrate"]).done().ends_with("was up to date"));
    cli.run(&["queue", "create", "orders"]).done();
}

#[tokio::test]
async fn creating_is_idempotent_and_refuses_other_options() {
    let cli = Cli::with_queues(&[]).await;
    let create = ["queue", "create", "orders", "--max-retries", "3", "--vt", "1m30s", "--on-ack", "delete"];

    assert_eq!(cli.run(&create).done(), "queue `orders` created");
    assert_eq!(cli.run(&create).done(), "queue `orders` was there already, with the same options");
    let refusal = cli.run(&["queue", "create", "orders", "--max-attempts", "4"]).failed();

    assert!(refusal.contains("max_attempts is 3, asked for 4"), "{refusal}");
    assert!(refusal.ends_with("change it with: vtq queue set orders"), "{refusal}");
    let shown = cli.run(&["queue", "show", "orders", "--json"]).json();
    assert_eq!(shown["options"]["max_attempts"], 3);
    assert_eq!(shown["options"]["visibility_timeout"], 90);
    assert_eq!(shown["options"]["on_ack"], "delete");
}

#[tokio::test]
async fn creating_again_repairs_a_queue() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.sql("DROP TABLE vtq.orders_dlq").await;

    let refusal = cli.run(&["dlq", "list", "orders"]).failed();
    assert!(refusal.ends_with("build it again with: vtq queue create orders"), "{refusal}");
    cli.run(&["queue", "create", "orders"]).done();

    assert_eq!(cli.run(&["dlq", "list", "orders"]).nothing(), "there are no dead letters");
}

#[tokio::test]
async fn every_option_reaches_the_queue() {
    let cli = Cli::with_queues(&[]).await;
    cli.run(&[
        "queue",
        "create",
        "orders",
        "--timeout",
        "none",
        "--priorities",
        "10,0,-5",
        "--unlogged",
        "--backoff-base",
        "0.1",
        "--backoff-max",
        "2m",
        "--backoff-kind",
        "linear",
        "--jitter",
        "full",
        "--on-deadline",
        "clamp",
        "--aging",
        "30m",
        "--archive-retention",
        "1d",
        "--attempts-retention",
        "none",
        "--dlq-retention",
        "4w",
        "--exclusive-limit",
        "3",
        "--group-on-dead",
        "pause",
        "--max-in-flight",
        "7",
        "--rate",
        "100/1m",
        "--key-rate",
        "none",
        "-o",
        "max_attempts=9",
    ])
    .done();

    let options = cli.run(&["queue", "show", "orders", "--json"]).json()["options"].take();

    let expected = json!({
        "visibility_timeout": "30 s", "max_attempts": 9, "timeout": null, "on_ack": "archive",
        "priorities": [10, 0, -5], "aging": 1800, "exclusive_limit": 3, "group_on_dead": "pause", "max_in_flight": 7,
        "rate": {"limit": 100, "interval": 60}, "key_rate": null, "unlogged": true, "archive_retention": 86400, "attempts_retention": null,
        "dlq_retention": 2419200, "backoff": {"kind": "linear", "base": 0.1, "max": 120, "jitter": "full", "on_deadline": "clamp"},
    });
    assert_eq!(options.to_string(), expected.to_string());
}

#[tokio::test]
async fn setting_a_part_of_the_backoff_keeps_the_rest() {
    let cli = Cli::with_queues(&[]).await;
    cli.run(&["queue", "create", "orders", "--backoff", r#"{"kind": "fixed", "base": 7}"#]).done();

    let set = cli.run(&["queue", "set", "orders", "--jitter", "none", "--json"]).json();

    assert_eq!(set["options"]["backoff"], json!({"kind": "fixed", "base": 7, "max": 300, "jitter": "none"}));
    assert!(cli.run(&["queue", "set", "orders"]).failed().starts_with("no option is given"));
    assert!(cli.run(&["queue", "set", "orders", "-o", "max_attempts=null"]).done().ends_with("changed"));
}

#[tokio::test]
async fn wrong_options_are_refused_with_the_rule() {
    let cli = Cli::with_queues(&["orders"]).await;
    for (option, sentence) in [
        (&["--vt", "2d"][..], "visibility_timeout 48:00:00 is not allowed"),
        (&["--vt", "-1"], "must not be negative"),
        (&["--vt", "infinity"], "such as 30s, 5m, 1h30m"),
        (&["--max-attempts", "0"], "0 is not in 1..=32767"),
        (&["--priorities", "1,1"], "priorities is [1, 1]"),
        (&["--backoff", "{"], "--backoff is not JSON"),
        (&["--jitter", "lots"], r#"backoff key "jitter" is "lots""#),
        (&["-o", "colour=red"], r#"option "colour" is not known"#),
        (&["-o", "colour"], "has no value: give NAME=VALUE"),
        (&["--unlogged"], "it is fixed when the queue is created"),
    ] {
        let refusal = cli.run(&[&["queue", "set", "orders"], option].concat()).failed();
        assert!(refusal.contains(sentence), "{refusal}");
    }
}

#[tokio::test]
async fn names_against_the_rule_are_refused_by_the_command_line_as_by_sql() {
    let cli = Cli::with_queues(&[]).await;
    for name in ["", "a.b", "a b", "\"; DROP TABLE x;--", "$1", "_x", "é", "orders ", "orders_dlq", "Orders"]
    {
        let refusal = cli.run(&["queue", "create", "--", name]).failed();
        assert!(refusal.contains("a queue name is 1 to 47 bytes"), "{refusal}");
    }
    for name in ["image-worker", "pg_x", "select", "1", &"q".repeat(47)] {
        cli.run(&["queue", "create", name]).done();
        cli.run(&["send", name, "1"]).done();
        cli.run(&["read", name]).done();
    }
}

#[tokio::test]
async fn a_queue_with_messages_is_dropped_only_on_request() {
    let cli = Cli::with_queues(&["orders", "mails"]).await;
    cli.run(&["send", "orders", "1"]).done();

    let refusal = cli.run(&["queue", "drop", "orders"]).failed();

    assert!(refusal.contains("holds 1 live messages and 0 dead letters: say --yes"), "{refusal}");
    assert_eq!(cli.run(&["queue", "drop", "orders", "--yes"]).done(), "queue `orders` dropped");
    assert_eq!(cli.run(&["queue", "drop", "mails"]).done(), "queue `mails` dropped");
    assert_eq!(cli.run(&["queue", "drop", "mails"]).nothing(), "queue `mails` does not exist");
    cli.run(&["queue", "list"]).nothing();
}

#[tokio::test]
async fn queues_are_listed_by_name() {
    let cli = Cli::with_queues(&["orders", "mails"]).await;

    let text = cli.run(&["queue", "list"]).done();
    let json = cli.run(&["queue", "list", "--json"]).json();

    let first: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(first, ["QUEUE", "mails", "orders"]);
    assert_eq!(json[1]["queue"], "orders");
    assert_eq!(json[1]["options"]["max_attempts"], 5);
}

#[tokio::test]
async fn a_paused_queue_hands_out_nothing_and_says_why() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&["send", "orders", "1"]).done();

    let paused = cli.run(&["pause", "orders", "--reason", "upgrade", "--for", "10m"]).done();

    assert!(paused.starts_with("queue `orders` is paused until 2"), "{paused}");
    cli.run(&["read", "orders"]).nothing();
    assert!(cli.run(&["queues"]).done().contains("paused until 2"));
    let queue = cli.run(&["queues", "--json"]).json()[0].take();
    assert_eq!((&queue["paused"], &queue["pause_reason"]), (&json!(true), &json!("upgrade")));
    assert!(cli.run(&["pause", "orders"]).done().ends_with("it was paused before"));
    assert!(cli.run(&["queue", "show", "orders"]).done().contains("paused"));
    assert_eq!(cli.run(&["resume", "orders"]).done(), "queue `orders` is running again");
    assert_eq!(cli.run(&["resume", "orders"]).nothing(), "queue `orders` was not paused");
    cli.run(&["read", "orders"]).done();
    let past = cli.run(&["pause", "orders", "--until", "2001-01-01T00:00:00Z"]).failed();
    assert!(past.contains("it must lie in the future"), "{past}");
}

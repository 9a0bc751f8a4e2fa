//! `vtq queues` and `vtq status`.

use serde_json::{Value, json};

use crate::support::Cli;

/// The words of a row, by the words of the first line.
fn words(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect()
}

#[tokio::test]
async fn every_state_has_its_count() {
    let cli = Cli::with_queues(&["orders", "mails"]).await;
    cli.bury("orders", 2).await;
    cli.run_on(&["send", "orders"], b"1\n2\n3\n4\n").done();
    cli.run(&["send", "orders", "5", "--delay", "1h"]).done();
    cli.run(&["read", "orders", "-n", "2"]).done();
    cli.run(&["fail", "orders", "3:1", "--retry-after", "1h", "--class", "Oops"]).done();

    let text = cli.run(&["queues"]).done();
    let json = cli.run(&["queues", "--exact", "--json"]).json();

    let lines: Vec<&str> = text.lines().collect();
    let heads =
        ["QUEUE", "READY", "IN FLIGHT", "DELAYED", "RETRYING", "DEAD", "OLDEST READY", "LAST ERROR", "STATE"];
    assert_eq!(words(lines[0]), heads);
    assert_eq!(words(lines[1]), ["mails", "0", "0", "0", "0", "0", "-", "-", "running"]);
    assert_eq!(&words(lines[2])[..6], ["orders", "2", "1", "1", "1", "2"]);
    assert_eq!(&words(lines[2])[7..], ["Oops", "running"]);
    let orders = &json[1];
    for (key, count) in
        [("ready", 2), ("in_flight", 1), ("delayed", 1), ("retrying", 1), ("dead", 2), ("sent_total", 7)]
    {
        assert_eq!(orders[key], count, "{key}");
    }
    assert!(orders["oldest_ready_age_ms"].is_u64() && orders["oldest_dead_age_ms"].is_u64(), "{orders}");
    assert_eq!((&orders["last_error_class"], &orders["estimated"]), (&json!("Oops"), &json!(false)));
    assert_eq!(json[0]["oldest_ready_age_ms"], Value::Null);
}

#[tokio::test]
async fn exhausted_and_expired_have_columns_when_there_are_any() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&["send", "orders", "1", "--max-attempts", "1"]).done();
    cli.run(&["send", "orders", "2", "--expires-in", "1h"]).done();
    cli.run(&["read", "orders"]).done();
    cli.sql("UPDATE vtq.orders SET expires_at = now() - interval '1 s' WHERE msg_id = 2").await;
    cli.sql("UPDATE vtq.orders SET vt = now() - interval '1 s', read_ct = 1 WHERE msg_id = 1").await;

    let text = cli.run(&["queues"]).done();

    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(&words(lines[0])[5..7], ["EXHAUSTED", "EXPIRED"], "{text}");
    assert_eq!(&words(lines[1])[1..8], ["0", "0", "0", "0", "1", "1", "0"], "{text}");
}

#[tokio::test]
async fn a_broken_queue_says_so_and_hides_none() {
    let cli = Cli::with_queues(&["broken", "orders"]).await;
    cli.run(&["send", "orders", "1"]).done();
    cli.sql("DROP TABLE vtq.broken_dlq").await;

    let text = cli.run(&["queues"]).done();
    let json = cli.run(&["queues", "--json"]).json();

    assert!(text.contains("broken: queue \"broken\" has no table"), "{text}");
    assert_eq!((&json[0]["ready"], &json[1]["ready"]), (&Value::Null, &json!(1)));
    assert!(json[0]["error"].as_str().is_some_and(|why| why.contains("has no table")));
}

#[tokio::test]
async fn estimates_are_marked() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.sql("SELECT count(s) FROM vtq.send_batch('orders', (SELECT array_agg(to_jsonb(repeat('x', 200))) FROM generate_series(1, 9000))) AS s").await;
    cli.run(&["send", "orders", "1", "--delay", "1h"]).done();

    let about = cli.run(&["queues"]).done();
    let exact = cli.run(&["queues", "--exact"]).done();

    let about = words(about.lines().nth(1).unwrap()).into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert!(about[1].starts_with('~') && about[3] == "1", "{about:?}");
    assert_eq!(words(exact.lines().nth(1).unwrap())[1..4], ["9000", "0", "1"]);
}

#[tokio::test]
async fn an_empty_database_has_nothing_to_show() {
    let cli = Cli::with_queues(&[]).await;

    assert!(cli.run(&["queues"]).nothing().starts_with("there are no queues: create one with"));
    assert!(cli.run(&["status"]).nothing().starts_with("no worker is running"));
    assert_eq!(cli.run(&["status", "--json", "--quiet"]).stdout(), "[]");
}

#[tokio::test]
async fn a_worker_is_shown_with_its_last_signs_of_life_and_work() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.sql("SELECT vtq._beat('w1', 'host1', 42, '0.1.0', ARRAY['orders'], interval '5 min', 3, 'deaf')")
        .await;
    cli.sql("SELECT vtq._beat('w2', 'host2', 43, '0.1.0', ARRAY['orders', 'mails'], NULL, 0)").await;

    let text = cli.run(&["status"]).done();
    let json = cli.run(&["status", "--json"]).json();

    let first = words(text.lines().nth(1).unwrap());
    assert_eq!(&first[..6], ["w1", "host1", "42", "0.1.0", "orders", "3"]);
    assert_eq!(first[7].split_whitespace().next(), Some("5m"), "{text}");
    assert_eq!(first[first.len() - 2], "deaf", "{text}");
    assert!(text.lines().nth(2).unwrap().contains("never"), "{text}");
    assert_eq!((&json[0]["pid"], &json[0]["in_flight"]), (&json!(42), &json!(3)));
    assert!(json[0]["last_claim_age_ms"].as_u64().is_some_and(|age| age >= 300_000));
    assert!(json[0]["heartbeat_age_ms"].as_u64().is_some_and(|age| age < 60_000));
    assert_eq!(json[1]["last_claim_at"], Value::Null);
    assert_eq!((&json[0]["wake_up"], &json[1]["wake_up"]), (&json!("deaf"), &Value::Null));
}

//! `vtq send` of one message, and its options.

use serde_json::json;

use crate::support::Cli;

#[tokio::test]
async fn a_message_is_sent_and_named_by_its_id() {
    let cli = Cli::with_queues(&["orders"]).await;

    assert_eq!(cli.run(&["send", "orders", r#"{"order": 7}"#]).done(), "1");
    assert_eq!(cli.run(&["send", "orders", "null", "--json"]).done(), r#"{"msg_id":2,"queue":"orders"}"#);
    assert_eq!(cli.run(&["send", "orders", "-5"]).done(), "3");

    assert_eq!(
        cli.run(&["peek", "orders", "-n", "9"]).done(),
        "orders/1\t{\"order\": 7}\norders/2\tnull\norders/3\t-5"
    );
}

#[tokio::test]
async fn numbers_come_back_digit_for_digit() {
    let cli = Cli::with_queues(&["orders"]).await;
    let message =
        r#"{"n": 123456789012345678901234567890.1234567890123456789012345678901234567890, "z": 1.10}"#;
    cli.run(&["send", "orders", message]).done();

    assert_eq!(cli.run(&["peek", "orders"]).done(), format!("orders/1\t{message}"));
    assert!(cli.run(&["read", "orders", "--json"]).done().contains(&format!("\"message\":{message}")));
}

#[tokio::test]
async fn options_of_a_message_reach_it() {
    let cli = Cli::with_queues(&[]).await;
    cli.run(&["queue", "create", "orders", "--priorities", "10,0"]).done();
    cli.run(&[
        "send",
        "orders",
        "1",
        "-H",
        "traceparent=00-a=b",
        "-H",
        "empty=",
        "--delay",
        "1h",
        "--priority",
        "10",
    ])
    .done();
    cli.run(&["send", "orders", "2", "--at", "2098-01-01T00:00:00+01:00", "--max-attempts", "2"]).done();
    cli.run(&["send", "orders", "3", "--expires-in", "10m"]).done();
    cli.run(&["send", "orders", "4", "--expires-at", "2098-01-01T00:00:00Z"]).done();

    let row = |id: u32, columns: &str| format!("SELECT {columns} FROM vtq.orders WHERE msg_id = {id}");
    assert_eq!(cli.sql(&row(1, "headers")).await, r#"{"empty": "", "traceparent": "00-a=b"}"#);
    assert_eq!(
        cli.sql(&row(1, "priority || ' ' || round(extract(epoch FROM ready_at - enqueued_at))")).await,
        "10 3600"
    );
    assert_eq!(cli.sql(&row(2, "ready_at = '2097-12-31 23:00:00+00' AND max_attempts = 2")).await, "t");
    assert_eq!(cli.sql(&row(3, "round(extract(epoch FROM expires_at - enqueued_at))")).await, "600");
    assert_eq!(cli.sql(&row(4, "expires_at = '2098-01-01 00:00:00+00'")).await, "t");
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_in_words() {
    let cli = Cli::with_queues(&["orders"]).await;
    for (args, sentence) in [
        (
            &["hello"][..],
            "message is not JSON: expected value at line 1 column 1; a text is written with quotes",
        ),
        (
            &[r#"{"a": [1, "x\u0000"]}"#],
            "message holds a NUL character (\\u0000), which jsonb cannot store, at $.a[1]",
        ),
        (&["1e999999"], "out of range for PostgreSQL's numeric"),
        (&["1", "--priority", "3"], "priority 3"),
        (&["1", "--delay", "-1"], "must not be negative"),
        (&["1", "--delay", "1e18"], "it is not a length of time"),
        (&["1", "--delay", "40000d"], "delay"),
        (&["1", "--at", "tomorrow"], "it is not an instant"),
        (&["1", "--delay", "1s", "--at", "2098-01-01T00:00:00Z"], "cannot be used with"),
        (&["1", "--expires-in", "9999999d"], "it ends past the year 9999"),
        (&["1", "--max-attempts", "-1"], "-1 is not in 1..=32767"),
        (&["1", "-H", "S3CRET"], "a --header has no value"),
        (&["1", "-H", "vtq_dead_letter=x"], "vtq_"),
    ] {
        let refusal = cli.run(&[&["send", "orders"], args].concat()).failed();
        assert!(refusal.contains(sentence), "{refusal}");
        assert!(!refusal.contains("S3CRET"), "{refusal}");
    }
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.orders").await, "0");
    cli.run(&["send", "orders", r#""legal \\u0000""#]).done();
}

#[tokio::test]
async fn an_unknown_queue_is_answered_with_the_way_out() {
    let cli = Cli::with_queues(&["orders"]).await;

    let far = cli.run(&["send", "nowhere", "1"]).failed();
    let near = cli.run(&["send", "ordres", "1"]).failed();

    assert_eq!(far, "queue \"nowhere\" does not exist: create it with: vtq queue create nowhere");
    assert!(near.ends_with("did you mean `orders`? Or create it with: vtq queue create ordres"), "{near}");
}

#[tokio::test]
async fn an_expired_message_is_not_handed_out() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&["send", "orders", "1", "--expires-in", "1h"]).done();
    cli.sql("UPDATE vtq.orders SET expires_at = now() - interval '1 s'").await;

    cli.run(&["read", "orders"]).nothing();
    cli.sql("SELECT vtq.sweep('orders')").await;

    let listed = cli.run(&["dlq", "list", "--json"]).json();
    assert_eq!((&listed[0]["reason"], &listed[0]["msg_id"]), (&json!("expired"), &json!(1)));
}

#[tokio::test]
async fn a_unique_key_is_answered_with_what_became_of_the_message() {
    let cli = Cli::with_queues(&["mails"]).await;
    let send = |message: &str, more: &[&str]| {
        cli.run(&[&["send", "mails", message, "--unique-key", "digest/7"], more].concat())
    };

    assert_eq!(send("1", &[]).done(), "1 sent");
    assert_eq!(send("2", &[]).done(), "1 skipped");
    assert_eq!(send("3", &["--on-conflict", "replace"]).done(), "1 replaced");
    assert_eq!(
        send("4", &["--json", "--on-conflict", "skip"]).done(),
        r#"{"msg_id":1,"outcome":"skipped","queue":"mails"}"#
    );
    assert_eq!(
        send("5", &["--on-conflict", "error"]).failed(),
        r#"unique_key "digest/7" of queue "mails" is taken by message 1"#
    );
    assert_eq!(cli.run(&["peek", "mails", "-n", "9"]).done(), "mails/1\t3");
    let lease = cli.run(&["read", "mails"]).done();
    let lease = lease.split('\t').next().unwrap();
    cli.run(&["fail", "mails", lease, "--retry-after", "1h"]).done();
    assert_eq!(send("6", &["--on-conflict", "replace"]).done(), "2 superseded");
}

#[tokio::test]
async fn options_of_keys_reach_the_message() {
    let cli = Cli::with_queues(&["mails"]).await;

    cli.run(&[
        "send",
        "mails",
        "1",
        "--unique-key",
        "u",
        "--unique-until",
        "done",
        "--unique-for",
        "1h",
        "--on-conflict",
        "replace",
        "--delay",
        "1m",
        "--max-wait",
        "2h",
        "--group-key",
        "g",
        "--retry-for",
        "3h",
    ])
    .done();
    cli.run(&["send", "mails", "2", "--exclusive-key", "x", "--retry-until", "2098-01-01T00:00:00Z"]).done();

    let row = |id: u32, columns: &str| {
        format!("SELECT concat_ws(' ', {columns}) FROM vtq.mails WHERE msg_id = {id}")
    };
    assert_eq!(
        cli.sql(&row(1, "unique_key, unique_until, unique_for, debounce_until - enqueued_at, group_key"))
            .await,
        "u done 01:00:00 02:00:00 g"
    );
    assert_eq!(cli.sql(&row(1, "round(extract(epoch FROM retry_until - enqueued_at) / 60)")).await, "180");
    assert_eq!(cli.sql(&row(2, "exclusive_key, retry_until = '2098-01-01 00:00:00+00'")).await, "x t");
}

#[tokio::test]
async fn keys_that_cannot_be_meant_are_refused_in_words() {
    let cli = Cli::with_queues(&["mails"]).await;
    for (args, sentence) in [
        (&["1", "--on-conflict", "skip"][..], "--unique-key"),
        (&["1", "--unique-for", "1h"], "--unique-key"),
        (&["1", "--unique-key", "k", "--max-wait", "1h"], "--delay"),
        (&["--unique-key", "k"], "MESSAGE"),
        (&["--unique-key", "k", "--file", "x"], "cannot be used with"),
        (
            &["1", "--unique-key", "k", "--max-wait", "1h", "--delay", "1m"],
            "it needs on_conflict replace and a delay",
        ),
        (&["1", "--group-key", "g", "--exclusive-key", "x"], "cannot be used with"),
        (&["1", "--unique-key", ""], "unique_key is not allowed to be empty"),
    ] {
        let refusal = cli.run(&[&["send", "mails"], args].concat()).failed();
        assert!(refusal.contains(sentence), "{args:?}: {refusal}");
    }
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.mails").await, "0");
}

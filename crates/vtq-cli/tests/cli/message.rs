//! Reading, settling, cancelling, hurrying, looking back.

use serde_json::json;

use crate::support::Cli;

#[tokio::test]
async fn a_message_is_read_with_its_lease_and_acked_with_it() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run_on(&["send", "orders"], b"1\n2\n").done();

    assert_eq!(cli.run(&["read", "orders"]).done(), "1:1\t1");
    assert_eq!(cli.run(&["read", "orders", "--qty", "5"]).done(), "2:1\t2");
    cli.run(&["read", "orders"]).nothing();
    assert_eq!(cli.run(&["read", "orders", "--json"]).stdout(), "[]");

    assert_eq!(cli.run(&["ack", "orders", "1:1"]).done(), "orders/1 acked");
    assert_eq!(
        cli.run(&["ack", "orders/2:1", "--json"]).json(),
        json!([{"queue": "orders", "msg_id": 2, "read_ct": 1, "outcome": "acked"}])
    );
}

#[tokio::test]
async fn read_in_json_has_everything() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&["send", "orders", r#"{"a": 1}"#, "-H", "k=v"]).done();

    let read = cli.run(&["read", "orders", "--json"]).json()[0].take();
    let peeked = cli.run(&["peek", "orders", "--json"]);

    assert_eq!(
        (&read["lease"], &read["attempt"], &read["timeout_ms"]),
        (&json!("1:1"), &json!(1), &json!(900_000))
    );
    assert_eq!((&read["headers"], &read["message"]), (&json!({"k": "v"}), &json!({"a": 1})));
    for instant in ["ready_at", "enqueued_at", "last_read_at", "visible_at"] {
        let text = read[instant].as_str().unwrap();
        assert!(text.ends_with('Z') && text.contains('T'), "{instant} {text}");
    }
    assert_eq!(peeked.json(), json!([]));
    peeked.nothing();
}

#[tokio::test]
async fn a_stale_lease_changes_nothing_and_exits_with_1() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&["send", "orders", "1"]).done();
    cli.run(&["read", "orders", "--vt", "1ms"]).done();
    cli.run(&["read", "orders"]).done();
    let lease = "SELECT vt || ' ' || read_ct FROM vtq.orders";
    let before = cli.sql(lease).await;

    for verb in [
        &["ack"][..],
        &["extend"],
        &["fail", "--error", "late"],
        &["fail", "--permanent"],
        &["defer", "--delay", "1s"],
        &["release"],
    ] {
        let remark = cli.run(&[verb, &["orders", "1:1"]].concat()).nothing();
        assert_eq!(
            remark, "stale lease, nothing changed: orders/1:1 was delivered again, settled or cancelled",
            "{verb:?}"
        );
    }

    assert_eq!(cli.sql(lease).await, before);
    let both = cli.run(&["ack", "orders", "1:1", "1:2", "--json"]);
    assert_eq!((&both.json()[0]["outcome"], &both.json()[1]["outcome"]), (&json!("stale"), &json!("acked")));
    both.nothing();
}

#[tokio::test]
async fn a_failure_is_retried_and_then_dead() {
    let cli = Cli::with_queues(&[]).await;
    cli.run(&[
        "queue",
        "create",
        "orders",
        "--max-attempts",
        "2",
        "--backoff-base",
        "1ms",
        "--jitter",
        "none",
    ])
    .done();
    cli.run(&["send", "orders", "1"]).done();

    cli.run(&["read", "orders"]).done();
    let first = cli
        .run(&["fail", "orders", "1:1", "--error", "boom", "--class", "Oops", "--retry-after", "0"])
        .done();
    assert!(first.starts_with("orders/1 retrying, due again at 2"), "{first}");
    cli.run(&["read", "orders"]).done();
    let second = cli.run(&["fail", "orders", "1:2", "--error", "boom again", "--json"]).json()[0].take();
    assert_eq!(second["outcome"], "dead");

    let attempts = cli.run(&["attempts", "orders/1", "--json"]).json();
    assert_eq!(
        (&attempts[0]["error_class"], &attempts[0]["error_message"]),
        (&json!("Oops"), &json!("boom"))
    );
    assert_eq!((&attempts[1]["read_ct"], &attempts[1]["outcome"]), (&json!(2), &json!("failed")));
    let table = cli.run(&["attempts", "orders", "1"]).done();
    assert!(table.starts_with("DELIVERY") && table.contains("Oops: boom"), "{table}");
    assert_eq!(
        cli.run(&["attempts", "orders/9"]).nothing(),
        "no unsuccessful delivery of orders/9 is on record"
    );
}

#[tokio::test]
async fn a_permanent_failure_is_dead_at_once() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&["send", "orders", "1"]).done();
    cli.run(&["read", "orders"]).done();

    assert_eq!(
        cli.run(&["fail", "orders", "1:1", "--permanent", "--error", "no such customer"]).done(),
        "orders/1 dead"
    );

    let block = cli.run(&["dlq", "show", "orders/1", "--json"]).json()["dead_letter"].take();
    assert_eq!(
        (&block["reason"], &block["error_message"]),
        (&json!("permanent_failure"), &json!("no such customer"))
    );
}

#[tokio::test]
async fn a_lease_is_extended_deferred_and_released() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run_on(&["send", "orders"], b"1\n2\n").done();
    cli.run(&["read", "orders", "-n", "2"]).done();

    assert_eq!(cli.run(&["extend", "orders", "1:1", "--vt", "1h"]).done(), "orders/1 extended");
    assert_eq!(cli.sql("SELECT vt > now() + '59 min' FROM vtq.orders WHERE msg_id = 1").await, "t");
    assert!(
        cli.run(&["defer", "orders", "1:1", "--delay", "1h"])
            .done()
            .starts_with("orders/1 deferred, due again")
    );
    assert_eq!(cli.run(&["release", "orders", "2:1", "--reason", "going home"]).done(), "orders/2 released");

    assert_eq!(cli.run(&["read", "orders"]).done(), "2:2\t2");
    assert_eq!(cli.run(&["attempts", "orders/2", "--json"]).json()[0]["reason"], "going home");
}

#[tokio::test]
async fn a_live_message_is_hurried_and_cancelled() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run_on(&["send", "orders", "--delay", "1h"], b"1\n2\n").done();

    assert_eq!(cli.run(&["retry", "orders/1"]).done(), "orders/1 due now");
    assert_eq!(
        cli.run(&["retry", "orders/1"]).nothing(),
        "neither delayed nor retrying, so left as is: orders/1"
    );
    assert_eq!(cli.run(&["read", "orders"]).done(), "1:1\t1");
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.orders").await, "2");

    let some = cli.run(&["discard", "orders", "1", "9", "--json"]);
    assert_eq!(some.json(), json!({"cancelled": ["orders/1"], "unmatched": ["orders/9"]}));
    assert_eq!(some.nothing(), "not there, so not cancelled: orders/9");
    assert_eq!(cli.run(&["cancel", "orders/2"]).done(), "orders/2 cancelled");
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.orders").await, "0");
}

#[tokio::test]
async fn what_names_nothing_is_refused_in_words() {
    let cli = Cli::with_queues(&["orders"]).await;
    for (args, sentence) in [
        (&["read", "orders", "--qty", "0"][..], "0 is not in 1..=10000"),
        (&["read", "orders", "--qty", "-1"], "-1 is not in 1..=10000"),
        (&["read", "orders", "--vt", "0"], "visibility_timeout 00:00:00 is not allowed"),
        (&["read", "orders", "--vt", "-5"], "must not be negative"),
        (&["read", "nowhere"], "queue \"nowhere\" does not exist"),
        (&["ack", "orders"], "no message is named"),
        (&["ack", "orders", "1"], "\"1\" is not a lease: give ID:READ_CT"),
        (&["ack", "orders", "1:0"], "is not a lease"),
        (&["cancel", "orders", "x"], "\"x\" is not the id of a message"),
        (&["cancel", "orders/1", "2"], "names no message"),
        (&["attempts", "orders/1", "orders/2"], "name one message"),
        (&["defer", "orders", "1:1", "--delay", "40000d"], "delay"),
    ] {
        let refusal = cli.run(args).failed();
        assert!(refusal.contains(sentence), "{refusal}");
    }
}

#[tokio::test]
async fn explain_tells_state_holder_layers_and_attempts() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&["send", "orders", "1", "--max-attempts", "7"]).done();
    cli.run(&["read", "orders"]).done();
    cli.run(&["fail", "orders", "1:1", "--error", "no", "--retry-after", "1h"]).done();

    let text = cli.run(&["explain", "orders/1"]).done();
    let json = cli.run(&["explain", "orders", "1", "--json"]).json();

    for part in ["retrying", "its last run failed", "7 (message)", "exponential (default)", "failed"] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
    assert_eq!(
        (&json["state"], &json["policy"]["max_attempts"]["from"]),
        (&"retrying".into(), &"message".into())
    );
}

#[tokio::test]
async fn explain_of_a_message_that_never_was_exits_with_1() {
    let cli = Cli::with_queues(&["orders"]).await;

    let text = cli.run(&["explain", "orders/9"]).nothing();

    assert!(text.contains("no message of this number was sent"), "{text}");
}

//! `vtq dlq`.

use serde_json::json;

use crate::support::Cli;

const CENSUS: &str =
    "SELECT (SELECT count(*) FROM vtq.orders_dlq) || ' ' || (SELECT count(*) FROM vtq.orders)";

#[tokio::test]
async fn dead_letters_are_listed_last_first_and_page_by_page() {
    let cli = Cli::with_queues(&["orders", "mails"]).await;
    cli.bury("orders", 3).await;
    cli.bury("mails", 2).await;
    // All at once: the order must hold among equals too.
    cli.sql("UPDATE vtq.orders_dlq SET dead_lettered_at = '2026-01-01'").await;
    cli.sql("UPDATE vtq.mails_dlq SET dead_lettered_at = '2026-01-01'").await;
    let expected = ["mails/2", "mails/1", "orders/3", "orders/2", "orders/1"];

    let mut seen: Vec<String> = Vec::new();
    let mut before: Option<String> = None;
    for _ in 0..5 {
        let cursor: Vec<&str> = before.iter().flat_map(|cursor| ["--before", cursor]).collect();
        let page = cli.run(&[&["dlq", "list", "--limit", "1", "--json"], &cursor[..]].concat()).json();
        seen.push(format!("{}/{}", page[0]["queue"].as_str().unwrap(), page[0]["msg_id"]));
        before = Some(page[0]["cursor"].as_str().unwrap().to_owned());
    }

    assert_eq!(seen, expected);
    assert_eq!(
        cli.run(&["dlq", "list", "--before", &before.unwrap()]).nothing(),
        "there are no dead letters"
    );
    let text = cli.run(&["dlq", "list", "orders", "--limit", "2"]);
    text.expect(0);
    assert!(
        text.stdout().contains("permanent_failure") && text.stdout().contains("no way"),
        "{}",
        text.stdout()
    );
    assert!(text.stderr().contains("there may be more: --before 2026-01-01T00:00:00.000000Z,orders/2"));
    assert!(cli.run(&["dlq", "list", "--before", "yesterday"]).failed().contains("is not a cursor"));
}

#[tokio::test]
async fn the_list_has_what_somebody_looks_for() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.bury("orders", 1).await;

    let letter = cli.run(&["dlq", "list", "orders", "--json"]).json()[0].take();

    assert_eq!(letter["reason"], "permanent_failure");
    assert_eq!(
        (&letter["attempts"], &letter["read_ct"], &letter["redrives"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!((&letter["error_class"], &letter["error_message"]), (&json!("Broken"), &json!("no way")));
}

#[tokio::test]
async fn trouble_is_an_error_and_never_an_empty_list() {
    let cli = Cli::with_queues(&["orders", "mails"]).await;
    cli.sql("DROP TABLE vtq.orders_dlq").await;

    for args in [
        &["dlq", "list"][..],
        &["dlq", "list", "orders"],
        &["dlq", "list", "nowhere"],
        &["dlq", "retry", "orders/1"],
        &["dlq", "retry-all", "orders"],
        &["dlq", "retry-all", "--all-queues"],
        &["dlq", "purge", "orders", "--all", "--yes"],
        &["dlq", "show", "orders/1"],
    ] {
        cli.run(args).failed();
    }
}

#[tokio::test]
async fn a_message_is_shown_only_on_request() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.run(&["send", "orders", r#"{"token": "S3CRET", "n": 12345678901234567890.10}"#, "-H", "auth=S3CRET"])
        .done();
    cli.run(&["read", "orders"]).done();
    cli.run(&["fail", "orders", "1:1", "--permanent", "--error", "line 1\nline 2\u{1b}[31m"]).done();

    let text = cli.run(&["dlq", "show", "orders/1"]).done();
    let json = cli.run(&["dlq", "show", "orders", "1", "--json"]).done();
    let whole_text = cli.run(&["dlq", "show", "orders/1", "--payload"]).done();
    let whole = cli.run(&["dlq", "show", "orders/1", "--payload", "--json"]).done();

    assert!(
        !text.contains("S3CRET")
            && !json.contains("S3CRET")
            && !cli.run(&["dlq", "list"]).done().contains("S3CRET")
    );
    assert!(text.contains("permanent_failure") && text.contains("DELIVERY"), "{text}");
    assert!(text.contains("line 1 line 2") && !text.contains('\u{1b}'), "{text}");
    assert!(whole_text.contains("12345678901234567890.10"), "{whole_text}");
    assert!(whole.contains(r#""message":{"n": 12345678901234567890.10, "token": "S3CRET"}"#), "{whole}");
    assert!(whole.contains(r#""headers":{"auth": "S3CRET""#), "{whole}");
    assert_eq!(cli.run(&["dlq", "show", "orders/9"]).nothing(), "orders/9 is not among the dead letters");
}

#[tokio::test]
async fn a_dead_letter_goes_back_with_the_same_id() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.bury("orders", 3).await;

    assert_eq!(cli.run(&["dlq", "retry", "orders/2"]).done(), "orders/2 sent back");
    let some = cli.run(&["dlq", "retry", "orders", "2", "3", "--delay", "1h", "--json"]);

    assert_eq!(some.json(), json!({"sent_back": ["orders/3"], "unmatched": ["orders/2"]}));
    assert_eq!(some.nothing(), "not among the dead letters: orders/2");
    let read = cli.run(&["read", "orders", "-n", "9", "--json"]).json();
    assert_eq!((&read[0]["msg_id"], &read[0]["attempt"], &read[1]), (&json!(2), &json!(1), &json!(null)));
    assert_eq!(read[0]["headers"]["vtq_redrives"], 1);
}

#[tokio::test]
async fn all_means_all_with_the_true_number() {
    let cli = Cli::with_queues(&["orders", "mails"]).await;
    cli.bury("orders", 2500).await;
    cli.bury("mails", 1).await;

    let dry = cli.run(&["dlq", "retry-all", "orders", "--dry-run"]).done();
    assert_eq!(dry, "2500 dead letters would be sent back");
    assert_eq!(cli.sql(CENSUS).await, "2500 0");

    assert_eq!(cli.run(&["dlq", "retry-all", "orders"]).done(), "2500 dead letters sent back");
    assert_eq!(cli.sql(CENSUS).await, "0 2500");
    let again = cli.run(&["dlq", "retry-all", "orders"]);
    assert_eq!((again.stdout().as_str(), again.nothing().as_str()), ("0 dead letters sent back", ""));

    let everywhere = cli.run(&["dlq", "retry-all", "--all-queues", "--json"]).json();
    let queues = json!([{"queue": "mails", "sent_back": 1}, {"queue": "orders", "sent_back": 0}]);
    assert_eq!(everywhere, json!({"sent_back": 1, "queues": queues}));
    assert!(cli.run(&["dlq", "retry-all"]).failed().contains("required"));
}

#[tokio::test]
async fn a_filter_takes_only_what_fits() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.bury("orders", 4).await;
    cli.run(&["send", "orders", "1"]).done();
    cli.run(&["read", "orders"]).done();
    cli.run(&["fail", "orders", "5:1", "--permanent", "--class", "Other"]).done();

    for dry_run in [&["--dry-run"][..], &[]] {
        let run =
            |filter: &[&str]| cli.run(&[&["dlq", "retry-all", "orders"], filter, dry_run].concat()).stdout();
        assert!(run(&["--reason", "worker_died"]).starts_with("0 dead letters"));
        assert!(run(&["--class", "Other"]).starts_with("1 dead letter "));
        assert!(run(&["--reason", "permanent_failure", "--class", "Broken"]).starts_with("4 dead letters"));
    }
    assert!(
        cli.run(&["dlq", "retry-all", "orders", "--reason", "bad_luck"]).failed().contains("possible values")
    );
}

#[tokio::test]
async fn purging_all_needs_a_yes() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.bury("orders", 3).await;

    let refusal = cli.run(&["dlq", "purge", "orders", "--all"]).failed();
    assert!(
        refusal.contains("all dead letters of queue `orders`, 3, would be purged for good: say --yes"),
        "{refusal}"
    );
    let bare = cli.run(&["dlq", "purge", "orders"]).failed();
    assert!(bare.contains("names no dead letter"), "{bare}");
    for args in [&["orders/1", "--all"][..], &["orders", "mails", "--all"], &["orders/1", "--dry-run"]] {
        cli.run(&[&["dlq", "purge"], args].concat()).failed();
    }
    assert_eq!(cli.sql(CENSUS).await, "3 0");

    assert_eq!(
        cli.run(&["dlq", "purge", "orders", "--all", "--dry-run"]).done(),
        "3 dead letters would be purged"
    );
    assert_eq!(cli.sql(CENSUS).await, "3 0");
    let purged = cli.run(&["dlq", "purge", "orders", "--all", "--yes", "--json"]).json();
    assert_eq!(purged, json!({"queue": "orders", "purged": 3}));
    cli.run(&["dlq", "purge", "orders", "--all", "--yes"]).nothing();
}

#[tokio::test]
async fn single_and_old_dead_letters_are_purged_without_asking() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.bury("orders", 4).await;
    cli.sql("UPDATE vtq.orders_dlq SET dead_lettered_at = now() - interval '31 days' WHERE msg_id = 4").await;

    assert_eq!(
        cli.run(&["dlq", "purge", "orders", "--older-than", "30d", "--dry-run"]).stdout(),
        "1 dead letter would be purged"
    );
    assert_eq!(cli.run(&["dlq", "purge", "orders", "--older-than", "30d"]).done(), "1 dead letter purged");
    cli.run(&["dlq", "purge", "orders", "--older-than", "30d"]).nothing();

    let some = cli.run(&["dlq", "purge", "orders/1", "orders/9"]);
    assert_eq!(some.stdout(), "orders/1 purged");
    assert_eq!(some.nothing(), "not among the dead letters: orders/9");
    assert_eq!(cli.run(&["dlq", "purge", "orders", "2", "3"]).done(), "orders/2 purged\norders/3 purged");
    assert_eq!(cli.sql(CENSUS).await, "0 0");
}

#[tokio::test]
async fn letters_whose_unique_key_is_taken_stay_and_are_told() {
    let cli = Cli::with_queues(&["orders"]).await;
    for id in ["1", "2"] {
        cli.run(&["send", "orders", id, "--unique-key", id]).done();
    }
    cli.run(&["read", "orders", "-n", "2"]).done();
    for lease in ["1:1", "2:1"] {
        cli.run(&["fail", "orders", lease, "--permanent"]).done();
    }
    cli.run(&["send", "orders", "3", "--unique-key", "1"]).done();

    let one = cli.run(&["dlq", "retry", "orders/1"]).failed();
    let all = cli.run(&["dlq", "retry-all", "orders"]).done();

    assert!(one.contains(r#"unique_key "1" of dead letter orders/1 is taken by message 3"#), "{one}");
    assert_eq!(all, "1 dead letter sent back; 1 not: another message has the unique key");
}

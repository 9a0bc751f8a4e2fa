//! What goes in comes out, and what cannot go in is named with its place.

use std::time::Duration;

use serde_json::{Map, Value, json};
use vtq::{ErrorKind, Outgoing, Queue, QueueOptions, ReadOptions, SendOptions, Vtq};
use vtq_tests::TestDb;

async fn queue() -> (TestDb, Queue) {
    let db = TestDb::new().await;
    let queue = Vtq::connect(db.url()).await.unwrap().queue("q").unwrap();
    queue.create(&QueueOptions::new()).await.unwrap();
    (db, queue)
}

#[tokio::test]
async fn json_of_every_kind_comes_back_digit_for_digit() {
    let (_db, queue) = queue().await;
    let texts = [
        "null",
        "true",
        "\"\"",
        "[]",
        "{}",
        "9007199254740993",
        "123456789012345678901234567890.12345678901234567890",
        "1.10",
        "\"\\u00e9 \\ud83d\\ude00\"",
        "[1, [2, {\"a\": null}]]",
    ];
    let batch: Vec<Outgoing> = texts.map(|text| Outgoing::from_json(text).unwrap()).into();

    queue.send_batch(&batch, &SendOptions::new()).await.unwrap();
    let read = queue.read(&ReadOptions::new().qty(100)).await.unwrap();

    let values = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for (message, text) in read.iter().zip(texts) {
        assert_eq!(values(message.body.get()), values(text));
    }
    assert_eq!(read.len(), texts.len());
}

#[tokio::test]
async fn nul_is_refused_with_its_place() {
    let (_db, queue) = queue().await;

    let error = queue.send(&json!({"user": {"names": ["ok", "x\0y"]}})).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::InvalidPayload);
    assert!(error.to_string().ends_with("at $.user.names[1]"), "{error}");
}

#[tokio::test]
async fn nul_in_a_header_is_refused_too() {
    let (_db, queue) = queue().await;
    let options = SendOptions::new().header("trace", "a\0");

    let error = queue.send_with(&Outgoing::new(&1).unwrap(), &options).await.unwrap_err();

    assert!(error.to_string().starts_with("headers holds a NUL"), "{error}");
}

#[tokio::test]
async fn message_too_deep_for_the_database_is_named_by_its_index() {
    let (_db, queue) = queue().await;
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let batch = [Outgoing::new(&1).unwrap(), Outgoing::from_json(deep).unwrap(), Outgoing::new(&3).unwrap()];

    let error = queue.send_batch(&batch, &SendOptions::new()).await.unwrap_err();

    assert_eq!((error.kind(), error.index()), (ErrorKind::InvalidPayload, Some(1)));
    assert!(queue.peek(10).await.unwrap().is_empty());
}

#[test]
fn text_that_is_no_json_is_refused() {
    for text in ["", "{", "{'a': 1}", "nul", "1 2", "\"\u{1}\""] {
        assert_eq!(Outgoing::from_json(text).unwrap_err().kind(), ErrorKind::InvalidPayload, "{text}");
    }
}

#[test]
fn message_over_the_limit_is_refused_with_both_sizes() {
    let error = Outgoing::new(&"x".repeat(vtq::MAX_MESSAGE_BYTES)).unwrap_err();

    let text = error.to_string();
    assert!(text.contains("104857602 bytes long") && text.contains("104857600"), "{text}");
}

#[tokio::test]
async fn headers_travel_with_the_message() {
    let (_db, queue) = queue().await;
    let own: Map<String, Value> = [("traceparent".to_owned(), json!("00-1-2-01"))].into_iter().collect();
    let batch = [Outgoing::new(&1).unwrap().headers(&own).unwrap(), Outgoing::new(&2).unwrap()];

    queue.send_batch(&batch, &SendOptions::new().header("tenant", 7)).await.unwrap();
    let read = queue.read(&ReadOptions::new().qty(2)).await.unwrap();

    assert_eq!(read[0].header::<String>("traceparent").unwrap().as_deref(), Some("00-1-2-01"));
    assert_eq!(read[0].header::<u64>("tenant").unwrap(), None);
    assert_eq!(read[1].header::<u64>("tenant").unwrap(), Some(7));
}

#[tokio::test]
async fn lengths_out_of_all_bounds_are_refused_in_words() {
    let (_db, queue) = queue().await;
    let endless = SendOptions::new().delay(Duration::MAX);

    let error = queue.send_with(&Outgoing::new(&1).unwrap(), &endless).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("is not allowed: it must be from"), "{error}");
}

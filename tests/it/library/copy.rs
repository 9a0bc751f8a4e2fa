//! Sending by COPY.

use serde_json::{Map, json};
use vtq::{ErrorKind, Outgoing, QueueOptions, ReadOptions, Vtq};
use vtq_tests::TestDb;

async fn queue(db: &TestDb) -> vtq::Queue {
    let queue = Vtq::connect(db.url()).await.unwrap().queue("q").unwrap();
    queue.create(&QueueOptions::new().priorities([9, 3])).await.unwrap();
    queue
}

#[tokio::test]
async fn copied_messages_are_as_if_they_were_sent() {
    let db = TestDb::new().await;
    let queue = queue(&db).await;
    let mut headers = Map::new();
    headers.insert("trace".into(), json!("a"));
    let first =
        Outgoing::new(&json!({"n": 1.10, "text": "a\tb\\c\nd\u{1F980}"})).unwrap().headers(&headers).unwrap();
    let rest = (1..5000).map(|n| Outgoing::new(&n).unwrap());

    let count = queue.send_copy(std::iter::once(first).chain(rest)).await.unwrap();

    assert_eq!(count, 5000);
    let read = queue.read(&ReadOptions::new().qty(2)).await.unwrap();
    assert_eq!((read[0].id(), read[0].priority), (1, 3), "the level of a send that names none");
    assert_eq!(read[0].decode::<serde_json::Value>().unwrap()["text"], "a\tb\\c\nd\u{1F980}");
    assert_eq!(read[0].header::<String>("trace").unwrap().as_deref(), Some("a"));
    assert_eq!(read[1].decode::<i64>().unwrap(), 1);
}

#[tokio::test]
async fn a_copy_with_one_bad_message_sends_nothing_and_names_it() {
    let db = TestDb::new().await;
    let queue = queue(&db).await;
    let mut reserved = Map::new();
    reserved.insert("vtq_redrives".into(), json!(7));
    let bad = Outgoing::new(&2).unwrap().headers(&reserved).unwrap();

    let error = queue.send_copy([Outgoing::new(&1).unwrap(), bad]).await.unwrap_err();

    assert_eq!(error.index(), Some(1));
    assert!(error.to_string().contains("header \"vtq_redrives\""), "{error}");
    assert_eq!(queue.metrics(vtq::Exact::Yes).await.unwrap().sent_total, Some(0));
    assert!(queue.peek(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_queue_that_is_not_there_takes_no_copy() {
    let db = TestDb::new().await;
    let queue = Vtq::connect(db.url()).await.unwrap().queue("nowhere").unwrap();

    let error = queue.send_copy([Outgoing::new(&1).unwrap()]).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::QueueNotFound);
}

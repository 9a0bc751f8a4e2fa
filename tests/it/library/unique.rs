//! Unique keys through the library: what a send is told, one by one and in batches.

use std::time::Duration;

use vtq::{
    ErrorKind, Failure, Fate, OnConflict, Outgoing, Queue, QueueOptions, ReadOptions, SendOptions,
    SendOutcome, UniqueUntil, Vtq,
};
use vtq_tests::TestDb;

async fn queue() -> (TestDb, Queue) {
    let db = TestDb::new().await;
    let queue = Vtq::connect(db.url()).await.unwrap().queue("q").unwrap();
    queue.create(&QueueOptions::new()).await.unwrap();
    (db, queue)
}

fn message(body: impl serde::Serialize, key: &str) -> Outgoing {
    Outgoing::new(&body).unwrap().unique_key(key)
}

async fn bodies(queue: &Queue) -> Vec<i32> {
    queue.peek(100).await.unwrap().iter().map(|message| message.decode().unwrap()).collect()
}

#[tokio::test]
async fn sender_is_told_whether_its_message_is_new() {
    let (_db, queue) = queue().await;
    let options = SendOptions::new().unique_key("k");
    let send = async |body: i32, options: &SendOptions| {
        let report = queue.send_report(&Outgoing::new(&body).unwrap(), options).await.unwrap();
        (report.id, report.outcome)
    };

    assert_eq!(send(1, &options).await, (1, SendOutcome::Sent));
    assert_eq!(send(2, &options).await, (1, SendOutcome::Skipped));
    assert_eq!(bodies(&queue).await, [1]);
    let replace = options.clone().on_conflict(OnConflict::Replace);
    assert_eq!(send(3, &replace).await, (1, SendOutcome::Replaced));
    assert_eq!(bodies(&queue).await, [3]);
    let lease = queue.read(&ReadOptions::new()).await.unwrap()[0].lease;
    let failure = Failure::new("no").retry_after(Duration::from_secs(3600));
    assert!(matches!(queue.fail(lease, &failure).await.unwrap(), Fate::Again { .. }));
    assert_eq!(send(4, &replace).await, (2, SendOutcome::Superseded));
    assert_eq!(bodies(&queue).await, [4]);
}

#[tokio::test]
async fn strict_sender_is_refused_with_a_kind_of_its_own() {
    let (_db, queue) = queue().await;
    let options = SendOptions::new().on_conflict(OnConflict::Error);
    queue.send_with(&message(1, "k"), &options).await.unwrap();

    let one = queue.send_with(&message(2, "k"), &options).await.unwrap_err();
    let batch = [message(3, "a"), message(4, "b"), message(5, "k")];
    let many = queue.send_batch(&batch, &options).await.unwrap_err();

    assert_eq!((one.kind(), one.code()), (ErrorKind::KeyTaken, Some("VT007")));
    assert_eq!(one.to_string(), r#"unique_key "k" of queue "q" is taken by message 1"#);
    assert_eq!((many.kind(), many.index()), (ErrorKind::KeyTaken, Some(2)));
    assert_eq!(bodies(&queue).await, [1]);
}

#[tokio::test]
async fn batch_reports_each_of_its_elements() {
    let (_db, queue) = queue().await;
    queue.send_with(&message(0, "taken"), &SendOptions::new()).await.unwrap();
    let batch = [message(1, "a"), Outgoing::new(&2).unwrap(), message(3, "taken"), message(4, "a")];

    let reports = queue.send_batch_report(&batch, &SendOptions::new()).await.unwrap();

    let new: Vec<bool> = reports.iter().map(|report| report.outcome.is_new()).collect();
    assert_eq!(new, [true, true, false, false]);
    assert_eq!((reports[2].id, reports[3].id), (1, reports[0].id));
    assert_eq!(bodies(&queue).await, [0, 1, 2]);
    assert!(queue.send_batch_report(&[], &SendOptions::new()).await.unwrap().is_empty());
}

/// One bad element fails the whole batch elsewhere, or is dropped without a word.
#[tokio::test]
async fn each_element_has_its_own_answer() {
    let (_db, queue) = queue().await;
    // Deeper than the database's stack, and no fault of the JSON.
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let batch = || {
        vec![
            Outgoing::new(&1),
            Outgoing::from_json(r#""NUL \u0000""#),
            Outgoing::from_json(deep.clone()),
            Ok(message(4, "k")),
            Ok(message(5, "k")),
            Outgoing::from_json("{"),
            Outgoing::new(&7),
        ]
    };

    for (options, fifth) in [
        (SendOptions::new(), Ok(SendOutcome::Skipped)),
        (SendOptions::new().on_conflict(OnConflict::Error), Err(ErrorKind::KeyTaken)),
    ] {
        let answers = queue.send_each(batch(), &options).await.unwrap();

        let told: Vec<_> = answers
            .iter()
            .map(|answer| answer.as_ref().map(|report| report.outcome).map_err(vtq::Error::kind))
            .collect();
        let bad = Err(ErrorKind::InvalidPayload);
        assert_eq!(told[1..3], [bad, bad]);
        assert_eq!(
            (told[0], told[4], told[5], told[6]),
            (Ok(SendOutcome::Sent), fifth, bad, Ok(SendOutcome::Sent))
        );
        for (place, answer) in answers.iter().enumerate() {
            assert!(answer.as_ref().err().is_none_or(|error| error.index() == Some(place)), "{answer:?}");
        }
    }
    assert_eq!(bodies(&queue).await, [1, 4, 7, 1, 7]);
}

#[tokio::test]
async fn options_of_keys_reach_the_message() {
    let (db, queue) = queue().await;
    let far = "2098-01-01T00:00:00Z".parse().unwrap();
    let options = SendOptions::new()
        .unique_key("u")
        .unique_until(UniqueUntil::Started)
        .unique_for(Duration::from_secs(60))
        .on_conflict(OnConflict::Replace)
        .delay(Duration::from_secs(10))
        .max_wait(Duration::from_secs(100))
        .group_key("g")
        .retry_until(far);
    queue.send_with(&Outgoing::new(&1).unwrap(), &options).await.unwrap();
    queue.send_with(&Outgoing::new(&2).unwrap().exclusive_key("x"), &SendOptions::new()).await.unwrap();

    let rows = db
        .client()
        .await
        .query(
            "SELECT concat_ws(' ', unique_key, unique_until, unique_for, debounce_until - enqueued_at, group_key,
                retry_until = '2098-01-01 00:00:00+00', exclusive_key)
            FROM vtq.q ORDER BY msg_id",
            &[],
        )
        .await
        .unwrap();

    let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(rows, ["u started 00:01:00 00:01:40 g t", "x"]);
}

#[tokio::test]
async fn failure_of_a_superseded_message_is_told_so() {
    let (_db, queue) = queue().await;
    let options = SendOptions::new().unique_until(UniqueUntil::Started);
    queue.send_with(&message(1, "k"), &options).await.unwrap();
    let lease = queue.read(&ReadOptions::new()).await.unwrap()[0].lease;
    queue.send_with(&message(2, "k"), &options).await.unwrap();

    assert_eq!(queue.fail(lease, &Failure::new("no")).await.unwrap(), Fate::Superseded);

    assert_eq!(bodies(&queue).await, [2]);
}

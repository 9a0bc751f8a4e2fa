//! Each verb of `Queue`, once, and what its answer looks like.

use std::time::Duration;

use vtq::{
    Created, ErrorKind, Exact, Failure, Fate, Lease, OnAck, Outgoing, Purge, Queue, QueueOptions,
    ReadOptions, Reason, RedriveFilter, SendOptions, Settled, Vtq,
};
use vtq_tests::TestDb;

async fn queue() -> (TestDb, Queue) {
    let db = TestDb::new().await;
    let queue = Vtq::connect(db.url()).await.unwrap().queue("q").unwrap();
    queue.create(&QueueOptions::new()).await.unwrap();
    (db, queue)
}

async fn leased(queue: &Queue) -> Lease {
    queue.send(&1).await.unwrap();
    queue.read(&ReadOptions::new()).await.unwrap()[0].lease
}

#[tokio::test]
async fn queue_is_created_once_and_changed_and_dropped() {
    let (_db, queue) = queue().await;

    assert_eq!(queue.create(&QueueOptions::new()).await.unwrap(), Created::Existing);
    let other = queue.create(&QueueOptions::new().max_attempts(9)).await.unwrap_err();
    let options = queue.set(&QueueOptions::new().max_attempts(9).on_ack(OnAck::Delete)).await.unwrap();

    assert_eq!(other.kind(), ErrorKind::QueueExists);
    assert_eq!((&options["max_attempts"], &options["on_ack"]), (&9.into(), &"delete".into()));
    assert_eq!(options, queue.options().await.unwrap());
    assert!(queue.drop_queue().await.unwrap());
    assert!(!queue.drop_queue().await.unwrap());
    assert_eq!(queue.send(&1).await.unwrap_err().kind(), ErrorKind::QueueNotFound);
}

#[tokio::test]
async fn batch_is_sent_in_its_order() {
    let (_db, queue) = queue().await;
    let batch: Vec<Outgoing> = (0..500).map(|n| Outgoing::new(&n).unwrap()).collect();

    let ids = queue.send_batch(&batch, &SendOptions::new()).await.unwrap();
    let read = queue.read(&ReadOptions::new().qty(500)).await.unwrap();

    assert!(ids.is_sorted() && ids.len() == 500);
    assert!(read.iter().enumerate().all(|(n, message)| message.decode::<usize>().unwrap() == n));
    assert!(queue.send_batch(&[], &SendOptions::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn failure_is_told_when_the_message_is_due_again_or_dead() {
    let (_db, queue) = queue().await;
    let lease = leased(&queue).await;

    let again = queue.fail(lease, &Failure::new("no").retry_after(Duration::ZERO)).await.unwrap();
    let second = queue.read(&ReadOptions::new()).await.unwrap()[0].clone();
    let settled = queue.dead_letter(second.lease, Reason::PermanentFailure, None).await.unwrap();

    assert!(matches!(again, Fate::Again { .. }), "{again:?}");
    assert_eq!((second.attempt, settled), (2, Settled::Done));
    assert_eq!(queue.fail(second.lease, &Failure::new("late")).await.unwrap(), Fate::LeaseLost);
    assert_eq!(queue.attempts(lease.id).await.unwrap().len(), 2);
}

#[tokio::test]
async fn deferred_and_released_runs_do_not_count() {
    let (_db, queue) = queue().await;
    let lease = leased(&queue).await;

    assert!(matches!(queue.defer(lease, Duration::ZERO, Some("later")).await.unwrap(), Fate::Again { .. }));
    let second = queue.read(&ReadOptions::new()).await.unwrap()[0].lease;
    assert_eq!(queue.release(&[second, lease], None).await.unwrap(), [lease.id]);
    let third = queue.read(&ReadOptions::new()).await.unwrap()[0].clone();

    assert_eq!((third.lease.read_ct, third.attempt), (3, 1));
    assert_eq!(
        queue.extend(&[third.lease, second], Some(Duration::from_secs(60))).await.unwrap(),
        [lease.id]
    );
    assert_eq!(queue.ack(third.lease).await.unwrap(), Settled::Done);
}

#[tokio::test]
async fn delayed_message_can_be_hurried_and_cancelled() {
    let (_db, queue) = queue().await;
    let later = SendOptions::new().delay(Duration::from_secs(3600));
    let id = queue.send_with(&Outgoing::new(&1).unwrap(), &later).await.unwrap();

    assert!(queue.run_now(id).await.unwrap());
    assert!(!queue.run_now(id).await.unwrap());
    assert!(queue.cancel(id).await.unwrap());
    assert!(!queue.cancel(id).await.unwrap());
}

#[tokio::test]
async fn dead_letters_are_listed_shown_redriven_and_purged() {
    let (_db, queue) = queue().await;
    for n in 0..5 {
        queue.send(&n).await.unwrap();
    }
    for message in queue.read(&ReadOptions::new().qty(5)).await.unwrap() {
        let _ = queue
            .dead_letter(message.lease, Reason::ByOperator, Some(&Failure::new("x").class("C")))
            .await
            .unwrap();
    }

    let page = queue.dlq_list(2, None).await.unwrap();
    let next = queue.dlq_list(10, Some((page[1].dead_lettered_at, page[1].id))).await.unwrap();
    let ids: Vec<i64> = page.iter().chain(&next).map(|letter| letter.id).collect();
    let shown = queue.dlq_show(3).await.unwrap().unwrap();

    assert_eq!(ids, [5, 4, 3, 2, 1]);
    assert_eq!((page[0].reason.as_str(), page[0].error_class.as_deref()), ("by_operator", Some("C")));
    assert_eq!(shown.body.get(), "2");
    assert!(queue.dlq_show(99).await.unwrap().is_none());
    assert!(queue.redrive(3, None).await.unwrap());
    assert_eq!(queue.dlq_purge(Purge::One(5), 1).await.unwrap(), 1);
    assert_eq!(
        queue.redrive_all(10, &RedriveFilter::new().error_class("C").reason("expired")).await.unwrap(),
        0
    );
    assert_eq!(queue.redrive_all(2, &RedriveFilter::new().error_class("C")).await.unwrap(), 2);
    assert_eq!(queue.dlq_purge(Purge::OlderThan(Duration::ZERO), 10).await.unwrap(), 1);
}

#[tokio::test]
async fn metrics_count_by_state() {
    let (_db, queue) = queue().await;
    let lease = leased(&queue).await;
    queue.send(&2).await.unwrap();
    let later = SendOptions::new().delay(Duration::from_secs(60));
    queue.send_with(&Outgoing::new(&3).unwrap(), &later).await.unwrap();

    let metrics = queue.metrics(Exact::No).await.unwrap();

    assert_eq!((metrics.ready, metrics.in_flight, metrics.delayed), (Some(1), Some(1), Some(1)));
    assert_eq!((metrics.sent_total, metrics.is_estimated, metrics.is_paused), (Some(3), false, false));
    assert!(metrics.oldest_ready_age.is_some() && metrics.oldest_dead_age.is_none());
    assert_eq!(queue.ack_batch(&[lease]).await.unwrap(), [lease.id]);
}

#[tokio::test]
async fn explain_tells_the_state_and_the_layer_of_each_number() {
    let (_db, queue) = queue().await;
    let lease = leased(&queue).await;
    let _ = queue.fail(lease, &Failure::new("no")).await.unwrap();

    let told: serde_json::Value = serde_json::from_str(queue.explain(lease.id).await.unwrap().get()).unwrap();

    assert_eq!((&told["where"], &told["state"]), (&"live".into(), &"retrying".into()));
    assert_eq!(told["policy"]["max_attempts"]["from"], "default");
    assert_eq!(told["attempts"][0]["outcome"], "failed");
}

#[tokio::test]
async fn pause_and_maintenance_answer_what_they_did() {
    let (_db, queue) = queue().await;
    queue.send(&1).await.unwrap();

    assert!(queue.pause(Some("a move"), None).await.unwrap());
    assert!(!queue.pause(None, None).await.unwrap());
    assert!(queue.read(&ReadOptions::new()).await.unwrap().is_empty());
    assert!(queue.resume().await.unwrap());
    assert!(!queue.resume().await.unwrap());
    assert_eq!(queue.maintain().await.unwrap()["ran"], true);
    assert_eq!(queue.sweep(10).await.unwrap(), vtq::Swept::default());
}

//! Unique keys while those that hold them fail, die and are killed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_postgres::Client;
use vtq::{
    Backoff, Jitter, MessageId, Outgoing, Queue, QueueOptions, SendOptions, SendOutcome, SendReport, Vtq,
};
use vtq_tests::wait_until;

use crate::child::Child;
use crate::harness::{RECOVERY, Stage, short_lease};
use crate::work::{Fate, Work};

fn options(max_attempts: u16) -> QueueOptions {
    let backoff = Backoff::fixed(Duration::from_millis(100)).jitter(Jitter::None);
    short_lease(1).max_attempts(max_attempts).backoff(&backoff)
}

async fn queue(stage: &Stage) -> Queue {
    Vtq::connect(&stage.cluster.url()).await.unwrap().queue("q").unwrap()
}

/// Sends with the one key of these tests.
async fn send(queue: &Queue, takes_ms: u64, fate: Fate) -> SendReport {
    let options = SendOptions::new().unique_key("K");
    queue.send_report(&Outgoing::new(&Work { takes_ms, fate }).unwrap(), &options).await.unwrap()
}

/// Waits until a message is dead, and gives the reason.
async fn dead(client: &Client, id: MessageId) -> String {
    let sql = "SELECT headers #>> '{vtq_dead_letter,reason}' FROM vtq.q_dlq WHERE msg_id = $1";
    let is_dead = async || client.query_opt(sql, &[&id]).await.unwrap().is_some();
    wait_until(RECOVERY, "the message to be dead", is_dead).await;
    client.query_one(sql, &[&id]).await.unwrap().get(0)
}

/// Sends until somebody runs the message that has the key and the database knows of it: what is killed before that,
/// costs no attempt. Each of these sends is told that the key is taken.
async fn started(queue: &Queue, client: &Client, id: MessageId, read_ct: i32) {
    let taken = SendReport { id, outcome: SendOutcome::Skipped };
    let sql = "SELECT FROM vtq.q WHERE msg_id = $1 AND read_ct = $2 AND started_read_ct = $2";
    let has_started = async || {
        assert_eq!(send(queue, 1, Fate::Done).await, taken, "before run {read_ct} of {id}");
        client.query_opt(sql, &[&id, &read_ct]).await.unwrap().is_some()
    };
    wait_until(RECOVERY, "the run to be known", has_started).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unique_key_of_a_dead_message_is_free_at_once() {
    let stage = Stage::new("unique keys, holders die", options(2)).await;
    let (queue, client) = (queue(&stage).await, stage.client().await);
    let mut child = Child::start(&stage);

    for (fate, reason) in [(Fate::Broken, "attempts_exhausted"), (Fate::Permanent, "permanent_failure")] {
        let sent = send(&queue, 1, fate).await;
        assert_eq!(sent.outcome, SendOutcome::Sent, "the key is free before {reason}");
        assert_eq!(dead(&client, sent.id).await, reason);
    }
    let sent = send(&queue, 60_000, Fate::Done).await;
    assert_eq!(sent.outcome, SendOutcome::Sent, "the dead have no key");
    for run in 1..=2 {
        started(&queue, &client, sent.id, run).await;
        std::mem::replace(&mut child, Child::start(&stage)).kill(&stage.runs);
    }
    assert_eq!(dead(&client, sent.id).await, "worker_died");

    let next = send(&queue, 1, Fate::Done).await;
    assert_eq!(next.outcome, SendOutcome::Sent, "the key is free after worker_died");
    stage.settled(&client).await;
    child.stop();
    let overlaps = stage.runs.overlaps_of(|_| ());
    assert!(overlaps.is_empty(), "two with the key at the same time: {overlaps:?}");
}

/// Sends all the time until it is told to stop; what it was told each time.
async fn send_on(queue: Queue, is_over: Arc<AtomicBool>) -> Vec<SendReport> {
    let mut reports = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        reports.push(send(&queue, 20, Fate::Broken).await);
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    reports
}

#[tokio::test(flavor = "multi_thread")]
async fn unique_key_of_a_message_that_fails_on_is_one_message_until_it_is_dead() {
    let stage = Stage::new("unique key, always fails", options(5)).await;
    let client = stage.client().await;
    let mut children = vec![Child::start(&stage), Child::start(&stage)];
    let is_over = Arc::new(AtomicBool::new(false));
    let mut senders = Vec::new();
    for _ in 0..3 {
        senders.push(tokio::spawn(send_on(queue(&stage).await, is_over.clone())));
    }

    // By the table and not by the column with the key: nothing else is sent here.
    let sql = "SELECT (SELECT count(*) FROM vtq.q), (SELECT count(*) FROM vtq.q_dlq)";
    let (mut looks, mut killed) = (0, 0);
    loop {
        let row = client.query_one(sql, &[]).await.unwrap();
        let (live, dead): (i64, i64) = (row.get(0), row.get(1));
        assert!(live <= 1, "{live} messages with the key are live");
        looks += 1;
        if dead >= 3 {
            break;
        }
        // A holder that is killed keeps the key as one that fails does.
        if let Some(run) = stage.runs.running().filter(|_| killed < dead as usize) {
            let place = children.iter().position(|child| child.number == run.worker).unwrap();
            killed += children.swap_remove(place).kill(&stage.runs);
            children.push(Child::start(&stage));
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let mut reports = Vec::new();
    for sender in senders {
        reports.extend(sender.await.unwrap());
    }
    stage.settled(&client).await;
    for child in children {
        child.stop();
    }

    let (sent, skipped): (Vec<SendReport>, Vec<SendReport>) =
        reports.iter().partition(|report| report.outcome == SendOutcome::Sent);
    let sent: BTreeSet<MessageId> = sent.iter().map(|report| report.id).collect();
    eprintln!("{}: {looks} looks, {} sends, {sent:?} sent, {killed} killed", stage.name, reports.len());
    let is_of_a_holder =
        |report: &SendReport| report.outcome == SendOutcome::Skipped && sent.contains(&report.id);
    assert!(skipped.iter().all(is_of_a_holder), "each is told who has the key: {skipped:?}");
    assert!(killed > 0 && skipped.len() > sent.len(), "it was tried");
    let dead = client.query("SELECT msg_id FROM vtq.q_dlq", &[]).await.unwrap();
    assert_eq!(dead.iter().map(|row| row.get(0)).collect::<BTreeSet<MessageId>>(), sent, "all are dead");
    assert!(
        stage.runs.by_key(|run| run.lease.id).values().all(|runs| runs.len() >= 5),
        "after all their runs"
    );
    let overlaps = stage.runs.overlaps_of(|_| ());
    assert!(overlaps.is_empty(), "two with the key at the same time: {overlaps:?}");
}

//! Messages that expire: while nobody works, while they run, and while their worker is killed.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_postgres::Client;
use vtq::MessageId;
use vtq_tests::wait_until;

use crate::child::Child;
use crate::harness::{RECOVERY, Stage, short_lease};
use crate::work::{Fate, Work};

/// Sends a message with more arguments: `, expires_at => ...`.
async fn send(client: &Client, takes_ms: u64, more: &str) -> MessageId {
    let work = serde_json::to_value(Work { takes_ms, fate: Fate::Done }).unwrap();
    client.query_one(&format!("SELECT vtq.send('q', $1{more})"), &[&work]).await.unwrap().get(0)
}

/// Waits until all that has a deadline is past it, but for those that have a day.
async fn all_expired(client: &Client) {
    let sql = "SELECT max(expires_at) < clock_timestamp() FROM vtq.q WHERE expires_at < enqueued_at + interval '1 hour'";
    let is_past = async || client.query_one(sql, &[]).await.unwrap().get::<_, bool>(0);
    wait_until(RECOVERY, "the deadlines to pass", is_past).await;
}

async fn ids(client: &Client, sql: &str) -> BTreeSet<MessageId> {
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Sends until every worker has run something, and waits until all of it is done.
async fn warm_up(client: &Client, children: &[Child], stage: &Stage) -> BTreeSet<MessageId> {
    let mut sent = BTreeSet::new();
    let all_ran = || children.iter().all(|child| stage.runs.begun_since(child.number, 0) > 0);
    while !all_ran() {
        sent.insert(send(client, 100, "").await);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    stage.settled(client).await;
    sent
}

const DEAD: &str = "SELECT msg_id FROM vtq.q_dlq WHERE headers #>> '{vtq_dead_letter,reason}' = 'expired'";
const DONE: &str = "SELECT msg_id FROM vtq.q_archive";

#[tokio::test(flavor = "multi_thread")]
async fn what_expires_while_no_worker_runs_never_runs() {
    let stage = Stage::new("expired before the worker came", short_lease(5)).await;
    let client = stage.client().await;
    let soon = ", expires_at => clock_timestamp() + interval '500 ms'";
    let (mut expired, mut good) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..20 {
        expired.insert(send(&client, 1, soon).await);
    }
    good.insert(send(&client, 1, "").await);
    good.insert(send(&client, 1, ", expires_at => clock_timestamp() + interval '1 day'").await);
    // Those behind an expired one of their key do not wait for it.
    for key in ["group_key", "exclusive_key"] {
        expired.insert(send(&client, 1, &format!("{soon}, {key} => 'a'")).await);
        good.insert(send(&client, 1, &format!(", {key} => 'a'")).await);
    }
    all_expired(&client).await;

    let child = Child::start(&stage);
    stage.settled(&client).await;
    child.stop();

    let ran: BTreeSet<MessageId> = stage.runs.by_key(|run| run.lease.id).into_keys().collect();
    assert_eq!(ran, good, "what has expired is handed to nobody");
    assert_eq!(ids(&client, DEAD).await, expired);
    assert_eq!(ids(&client, DONE).await, good);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_expires_while_it_runs_is_finished_unless_its_worker_dies() {
    let mut stage = Stage::new("expired while running", short_lease(1)).await;
    stage.concurrency = 1;
    let client = stage.client().await;
    let mut children = vec![Child::start(&stage), Child::start(&stage)];
    // So that both are there and at work before the deadline is set.
    let mut done = warm_up(&client, &children, &stage).await;
    let soon = ", expires_at => clock_timestamp() + interval '3 s'";
    let (finished, killed) = (send(&client, 4500, soon).await, send(&client, 60_000, soon).await);
    let runs_of = |id| stage.runs.by_key(|run| run.lease.id).remove(&id).unwrap_or_default();
    let both_run = async || !runs_of(finished).is_empty() && !runs_of(killed).is_empty();
    wait_until(RECOVERY, "both to run", both_run).await;

    all_expired(&client).await;
    let swept = client.query_one("SELECT dead FROM vtq.sweep('q')", &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!(swept, 0, "what runs is left alone");
    let holder = runs_of(killed)[0].worker;
    let place = children.iter().position(|child| child.number == holder).unwrap();
    children.remove(place).kill(&stage.runs);
    children.push(Child::start(&stage));
    stage.settled(&client).await;
    for child in children {
        child.stop();
    }

    assert_eq!(runs_of(finished).len(), 1);
    assert_eq!(runs_of(killed).len(), 1, "no second run starts after the deadline");
    assert_eq!(ids(&client, DEAD).await, BTreeSet::from([killed]));
    done.insert(finished);
    assert_eq!(ids(&client, DONE).await, done);
}

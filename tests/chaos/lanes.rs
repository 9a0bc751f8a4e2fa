//! Groups and exclusive keys while the workers that hold them are killed.

use std::collections::BTreeMap;

use tokio_postgres::Client;
use vtq::{MessageId, Outgoing, SendOptions, Vtq};
use vtq_tests::wait_until;

use crate::child::Child;
use crate::harness::{RECOVERY, Stage, short_lease};
use crate::producer::Sent;
use crate::runs::Run;
use crate::verdict::{Doubles, number};
use crate::work::{Fate, Work};

/// The key of every message that was sent.
type Keys = BTreeMap<MessageId, usize>;

/// Sends `each` messages for each key, those of all keys in turn, a message of each in one send.
async fn send(
    stage: &mut Stage,
    (keys, each): (usize, usize),
    with_key: impl Fn(Outgoing, String) -> Outgoing,
    mut work: impl FnMut(&mut Stage) -> Work,
) -> (Keys, Sent) {
    let vtq = Vtq::connect(&stage.cluster.url()).await.unwrap();
    let queue = vtq.queue("q").unwrap();
    let (mut key_of, mut sent) = (Keys::new(), Sent::default());
    for _ in 0..each {
        let works: Vec<Work> = (0..keys).map(|_| work(stage)).collect();
        let keyed = |(key, work)| with_key(Outgoing::new(work).unwrap(), format!("key {key}"));
        let batch: Vec<Outgoing> = works.iter().enumerate().map(keyed).collect();
        let ids = queue.send_batch(&batch, &SendOptions::new()).await.unwrap();
        key_of.extend(ids.iter().copied().zip(0..));
        sent.acknowledged.extend(ids.into_iter().zip(works.iter().map(|work| work.fate)));
    }
    (key_of, sent)
}

/// Kills workers in the middle of a run, until so many runs were cut short, and puts others in their places.
async fn kill_holders(stage: &mut Stage, children: &mut Vec<Child>, times: usize) {
    let mut killed = 0;
    while killed < times {
        let others = stage.runs.len() + 5;
        stage.warm(others).await;
        // Some have told of their start by then, others have not: a death counts as an attempt or does not.
        stage.dice.wait(0, 400).await;
        wait_until(RECOVERY, "a run", async || stage.runs.running().is_some()).await;
        let Some(run) = stage.runs.running() else { continue };
        let place = children.iter().position(|child| child.number == run.worker).expect("one that lives");
        killed += children.swap_remove(place).kill(&stage.runs);
        children.push(Child::start(stage));
    }
    stage.notes.push(format!("{killed} runs killed"));
}

/// Each run that was killed, the next one of its key, and how many of other keys began between the two.
fn after_kills(stage: &Stage, key_of: &Keys) -> Vec<(Run, Run, usize)> {
    let by_key = stage.runs.by_key(|run| key_of[&run.lease.id]);
    let began_between = |key: usize, from: &Run, to: &Run| {
        let others = by_key.iter().filter(|(other, _)| **other != key).flat_map(|(_, runs)| runs);
        others.filter(|run| from.end.unwrap() < run.start && run.start < to.start).count()
    };
    let pairs = by_key.iter().flat_map(|(key, runs)| runs.windows(2).map(move |pair| (*key, pair)));
    let killed = pairs.filter(|(_, pair)| pair[0].is_killed);
    killed.map(|(key, pair)| (pair[0], pair[1], began_between(key, &pair[0], &pair[1]))).collect()
}

/// Nobody runs beside a dead holder's lease, which comes back to its own message; the other keys go on meanwhile.
fn check_kills(stage: &Stage, key_of: &Keys, kills: usize) {
    let overlaps = stage.runs.overlaps_of(|run| key_of[&run.lease.id]);
    assert!(overlaps.is_empty(), "two of one key at the same time: {overlaps:?}");
    let killed = after_kills(stage, key_of);
    assert!(killed.len() >= kills, "somebody comes after each: {killed:?}");
    for (run, next, others) in killed {
        assert_eq!(
            run.lease.id, next.lease.id,
            "a lapsed lease is handed out again first: {run:?}, {next:?}"
        );
        assert!(others > 0, "the other keys wait for nothing: {run:?}, {next:?}");
    }
}

/// Kills holders, waits until all is done, ends the workers, and looks at what came of it.
async fn work_through_kills(
    stage: &mut Stage,
    mut children: Vec<Child>,
    key_of: &Keys,
    kills: usize,
) -> Client {
    kill_holders(stage, &mut children, kills).await;

    let client = stage.client().await;
    stage.settled(&client).await;
    for child in children {
        child.stop();
    }
    check_kills(stage, key_of, kills);
    client
}

/// One message in twenty fails at first, and some take long enough to be killed, before and after their first heartbeat.
fn group_work(stage: &mut Stage) -> Work {
    let fate = if stage.dice.below(20) == 0 { Fate::Retry } else { Fate::Done };
    let takes_ms = if stage.dice.below(12) == 0 { 100 + stage.dice.below(500) } else { stage.dice.below(20) };
    Work { takes_ms, fate }
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_keep_their_order_through_failures_and_killed_workers() {
    let mut stage = Stage::new("groups, workers killed", short_lease(1)).await;
    stage.concurrency = 1;
    let children: Vec<Child> = (0..8).map(|_| Child::start(&stage)).collect();
    let (key_of, sent) = send(&mut stage, (3, 100), Outgoing::group_key, group_work).await;

    let client = work_through_kills(&mut stage, children, &key_of, 3).await;

    for (group, runs) in stage.runs.by_key(|run| key_of[&run.lease.id]) {
        assert!(runs.is_sorted_by_key(|run| run.lease.id), "group {group} ran out of order: {runs:?}");
    }
    let failed = "SELECT count(*) FROM vtq.q_attempts WHERE outcome = 'failed'";
    assert!(number(&client, failed).await > 0, "some have failed, and held their group until they came back");
    let out_of_order = "
        SELECT count(*) FROM (
            SELECT archived_at <= lag(archived_at) OVER (PARTITION BY group_key ORDER BY msg_id) AS is_late
            FROM vtq.q_archive
        ) AS a WHERE is_late";
    assert_eq!(number(&client, out_of_order).await, 0, "acked out of order");
    stage.verify_sent(sent, Doubles::Never).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exclusive_key_of_a_killed_holder_runs_on_and_never_twice() {
    let mut stage = Stage::new("exclusive keys, holders killed", short_lease(1)).await;
    stage.concurrency = 1;
    let children: Vec<Child> = (0..4).map(|_| Child::start(&stage)).collect();
    let work = |stage: &mut Stage| Work { takes_ms: 50 + stage.dice.below(500), fate: Fate::Done };
    let (key_of, sent) = send(&mut stage, (3, 15), Outgoing::exclusive_key, work).await;

    work_through_kills(&mut stage, children, &key_of, 3).await;

    stage.verify_sent(sent, Doubles::Never).await;
}

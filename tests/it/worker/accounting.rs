//! Only runs that started count; what kills its worker ends in the dead letters, and its neighbours do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use vtq::{Message, Outgoing, QueueOptions, SendOptions, WorkerEvent, handler_fn};

use super::{Bench, gated, until};

async fn bench(max_attempts: u16, count: usize) -> Bench {
    let options = QueueOptions::new().visibility_timeout(Duration::from_secs(1)).max_attempts(max_attempts);
    let bench = Bench::new(options).await;
    let batch: Vec<Outgoing> = (0..count).map(|n| Outgoing::new(&n).unwrap()).collect();
    bench.queue.send_batch(&batch, &SendOptions::new()).await.unwrap();
    bench
}

async fn outcomes(bench: &Bench, id: i64) -> String {
    let sql = "SELECT coalesce(string_agg(outcome, ' ' ORDER BY read_ct), '') FROM vtq.q_attempts WHERE msg_id = $1 AND outcome <> 'released'";
    bench.client.query_one(sql, &[&id]).await.unwrap().get(0)
}

async fn dead_reason(bench: &Bench, id: i64) -> Option<String> {
    let sql = "SELECT headers #>> '{vtq_dead_letter,reason}' FROM vtq.q_dlq WHERE msg_id = $1";
    bench.client.query_opt(sql, &[&id]).await.unwrap().map(|row| row.get(0))
}

/// Starts a worker whose handler dies with it the moment it meets message 1.
async fn die_of_message_1(bench: &Bench, runs: &Arc<AtomicUsize>) {
    let met = Arc::new(AtomicBool::new(false));
    let (seen, counted) = (met.clone(), runs.clone());
    let handler = handler_fn(move |message: Message, _| {
        let is_poison = message.id() == 1;
        if is_poison {
            counted.fetch_add(1, Ordering::SeqCst);
            seen.store(true, Ordering::SeqCst);
        }
        async move {
            if is_poison {
                std::future::pending::<()>().await;
            }
        }
    });
    let worker = bench.start(handler, |b| b);
    let gone = async || dead_reason(bench, 1).await.is_some() || met.load(Ordering::SeqCst);
    until("the poison to be met, or dead", gone).await;
    worker.kill();
}

/// A supervisor that starts a new worker whenever one has died.
async fn restart_until_settled(bench: &Bench, runs: &Arc<AtomicUsize>) {
    for _ in 0..8 {
        if dead_reason(bench, 1).await.is_some() {
            break;
        }
        die_of_message_1(bench, runs).await;
    }
    let last = bench.start(handler_fn(|_, _| async {}), |b| b);
    until("all to be settled", async || bench.number("SELECT count(*) FROM vtq.q").await == 0).await;
    last.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn message_that_kills_its_worker_at_once_is_dead_after_its_budget() {
    let bench = bench(3, 5).await;
    let runs = Arc::new(AtomicUsize::new(0));

    restart_until_settled(&bench, &runs).await;

    assert_eq!(dead_reason(&bench, 1).await.as_deref(), Some("worker_died"));
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    // A heartbeat may or may not have told of the first start; the later ones are marked before they begin.
    let told = outcomes(&bench, 1).await;
    assert!(
        ["never_started abandoned abandoned", "abandoned abandoned abandoned"].contains(&&*told),
        "{told}"
    );
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q_archive").await, 4);
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q_dlq").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn run_that_is_known_to_have_started_counts_when_its_worker_dies() {
    let bench = bench(1, 1).await;
    let worker = bench.start(handler_fn(|_, _| std::future::pending::<()>()), |b| b);
    let marked = async || bench.number("SELECT started_read_ct::bigint FROM vtq.q").await == 1;
    until("the start to be recorded", marked).await;

    worker.kill();
    let heir = bench.start(handler_fn(|_, _| async {}), |b| b);
    until("it to be dead", async || dead_reason(&bench, 1).await.is_some()).await;

    assert_eq!(dead_reason(&bench, 1).await.as_deref(), Some("worker_died"));
    assert_eq!(outcomes(&bench, 1).await, "abandoned");
    heir.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn suspect_runs_alone() {
    let bench = bench(3, 1).await;
    bench.queue.read(&vtq::ReadOptions::new().visibility_timeout(Duration::from_millis(1))).await.unwrap();
    let batch: Vec<Outgoing> = (0..20).map(|n| Outgoing::new(&n).unwrap()).collect();
    bench.queue.send_batch(&batch, &SendOptions::new()).await.unwrap();
    let (running, beside_suspect) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, most) = (running.clone(), beside_suspect.clone());
    let handler = handler_fn(move |message: Message, _| {
        let (count, most) = (count.clone(), most.clone());
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            for _ in 0..10 {
                if message.is_suspect {
                    most.fetch_max(count.load(Ordering::SeqCst), Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            count.fetch_sub(1, Ordering::SeqCst);
        }
    });

    let stopped = bench.start(handler, |b| b.once()).ended().await;

    assert_eq!(stopped.done, 21);
    assert_eq!(beside_suspect.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn success_after_a_lost_lease_is_written_down() {
    let bench = bench(3, 1).await;
    let gate = Arc::new(Semaphore::new(0));
    let worker = bench.start(gated(gate.clone()), |b| b);
    let events = worker.events.clone();
    until("the run to start", async || events.count(|e| matches!(e, WorkerEvent::RunStarted { .. })) == 1)
        .await;
    vtq_tests::make_visible(&bench.client, "q", 1).await;
    bench.queue.read(&vtq::ReadOptions::new().visibility_timeout(Duration::from_secs(60))).await.unwrap();

    gate.add_permits(1);
    until("the late run to be written down", async || outcomes(&bench, 1).await == "late_success").await;

    let stopped = worker.stop().await;
    assert_eq!((stopped.late, stopped.lost, stopped.done), (1, 1, 0));
}

/// Neighbours that wait for a slot while the poison runs must not lapse with it, time after time.
#[tokio::test(flavor = "multi_thread")]
async fn neighbours_of_a_poison_are_all_handled() {
    let bench = bench(3, 40).await;
    bench
        .client
        .batch_execute("UPDATE vtq.q SET message = '\"x\"' WHERE msg_id BETWEEN 2 AND 40")
        .await
        .unwrap();
    let runs = Arc::new(AtomicUsize::new(0));

    restart_until_settled(&bench, &runs).await;

    assert_eq!(bench.number("SELECT count(*) FROM vtq.q_archive").await, 39);
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    let most = "SELECT coalesce(max(ct), 0) FROM (SELECT count(*) AS ct FROM vtq.q_attempts \
                WHERE msg_id <> 1 AND outcome <> 'released' GROUP BY msg_id) AS per_message";
    assert!(bench.number(most).await <= 1, "a neighbour has died with the poison more than once");
}

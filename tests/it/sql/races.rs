//! Two at once: whoever comes second finds what the first has left, and nothing happens twice.

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::session::Session;

/// Starts a query in a session of its own, which the first one's open transaction will block.
pub(super) async fn started(s: &Session, sql: &'static str) -> JoinHandle<Value> {
    let session = s.another().await;
    let pid: i32 = session.value("SELECT pg_backend_pid()").await;
    let query = tokio::spawn(async move { session.rows(sql).await });
    let watcher = s.another().await;
    let blocked = format!("SELECT cardinality(pg_blocking_pids({pid})) > 0");
    vtq_tests::wait_until(std::time::Duration::from_secs(10), "the second to wait", async || {
        watcher.value::<bool>(&blocked).await
    })
    .await;
    query
}

#[tokio::test]
async fn a_failure_sent_twice_is_recorded_once_and_answered_alike() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;
    let call = "SELECT outcome, vt FROM vtq.fail('q', 1, 1, '\"x\"')";

    s.run("BEGIN").await;
    let first = s.rows(call).await;
    let second = started(&s, call).await;
    s.run("COMMIT").await;

    assert_eq!(second.await.unwrap(), first);
    assert_eq!(s.count("vtq.q_attempts").await, 1);
}

#[tokio::test]
async fn a_last_failure_sent_twice_makes_one_dead_letter() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;
    let call = "SELECT outcome, vt FROM vtq.fail('q', 1, 1, '\"x\"')";

    s.run("BEGIN").await;
    let first = s.rows(call).await;
    let second = started(&s, call).await;
    s.run("COMMIT").await;

    assert_eq!(first, json!([{"outcome": "dead", "vt": null}]));
    assert_eq!(second.await.unwrap(), first);
    assert_eq!(s.count("vtq.q_dlq").await, 1);
}

#[tokio::test]
async fn an_ack_that_waits_for_a_cancellation_is_stale() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;

    s.run("BEGIN; SELECT vtq.cancel('q', 1)").await;
    let ack = started(&s, "SELECT vtq.ack('q', '{1}', '{1}') AS id OFFSET 0").await;
    s.run("COMMIT").await;

    assert_eq!(ack.await.unwrap(), json!([]));
    assert_eq!(s.count("vtq.q_archive").await, 0);
}

#[tokio::test]
async fn a_failure_that_waits_for_an_ack_is_stale() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;

    s.run("BEGIN; SELECT vtq.ack('q', '{1}', '{1}')").await;
    let failure = started(&s, "SELECT outcome FROM vtq.fail('q', 1, 1)").await;
    s.run("COMMIT").await;

    assert_eq!(failure.await.unwrap(), json!([{"outcome": "stale"}]));
    assert_eq!(s.count("vtq.q_attempts").await, 0);
}

#[tokio::test]
async fn an_ack_whose_rival_rolls_back_is_good() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;

    s.run("BEGIN; SELECT vtq.cancel('q', 1)").await;
    let ack = started(&s, "SELECT vtq.ack('q', '{1}', '{1}') AS id OFFSET 0").await;
    s.run("ROLLBACK").await;

    assert_eq!(ack.await.unwrap(), json!([{"id": 1}]));
}

#[tokio::test]
async fn a_letter_is_redriven_by_one_of_two() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q'); SELECT vtq.dead_letter('q', 1, 1)").await;

    s.run("BEGIN; SELECT vtq.redrive('q', 1)").await;
    let second = started(&s, "SELECT vtq.redrive('q', 1) AS moved").await;
    s.run("COMMIT").await;

    assert_eq!(second.await.unwrap(), json!([{"moved": false}]));
    assert_eq!((s.count("vtq.q").await, s.count("vtq.q_dlq").await), (1, 0));
}

/// Runs a statement that answers a number in four sessions, each until it answers 0; returns the sum of the answers.
async fn four_at_once(s: &Session, sql: &'static str) -> i64 {
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let session = s.another().await;
        sessions.push(tokio::spawn(async move {
            let mut sum = 0;
            loop {
                match session.value::<i64>(sql).await {
                    0 => return sum,
                    n => sum += n,
                }
            }
        }));
    }
    let mut sum = 0;
    for session in sessions {
        sum += session.await.unwrap();
    }
    sum
}

#[tokio::test]
async fn four_sweeps_redrives_and_purges_do_their_work_once() {
    let s = Session::with_queue("{}").await;
    s.run(
        "SELECT vtq.send_batch('q', array_agg('1'::jsonb), expires_at => clock_timestamp() + interval '1 h')
        FROM generate_series(1, 600);
        UPDATE vtq.q SET expires_at = now()",
    )
    .await;

    assert_eq!(four_at_once(&s, "SELECT dead FROM vtq.sweep('q', 7)").await, 600);
    assert_eq!(four_at_once(&s, "SELECT vtq.redrive_all('q', 7)").await, 600);
    assert_eq!(s.count("vtq.q").await, 600);
    s.run("SELECT vtq.dead_letter('q', r.msg_id, r.read_ct) FROM vtq.read('q', qty => 600) AS r").await;
    assert_eq!(four_at_once(&s, "SELECT vtq.dlq_purge('q', older_than => '0', qty => 7)").await, 600);
}

#[tokio::test]
async fn creating_and_dropping_at_once_leaves_a_whole_queue_or_none() {
    let s = Session::new().await;
    let mut sessions = Vec::new();
    for n in 0..6 {
        let session = s.another().await;
        sessions.push(tokio::spawn(async move {
            for _ in 0..5 {
                let verb = if n % 3 == 0 { "drop_queue" } else { "create_queue" };
                session.run(&format!("SELECT vtq.{verb}('q')")).await;
            }
        }));
    }
    for session in sessions {
        session.await.unwrap();
    }

    let row = s
        .row(
            "SELECT (SELECT count(*) FROM vtq._queue) * 4 AS expected, count(*) AS tables FROM pg_class
            WHERE relnamespace = 'vtq'::regnamespace AND relname IN ('q', 'q_dlq', 'q_archive', 'q_attempts')",
        )
        .await;
    assert_eq!(row["tables"], row["expected"]);
}

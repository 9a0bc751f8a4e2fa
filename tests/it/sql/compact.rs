//! Compaction: dead rows that vacuum may not remove are given back, live ones keep all they have.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::session::Session;

/// Above the 16 MB from which a table is worth it, at two messages on a half-filled page.
const MANY: i32 = 4400;

/// A queue with [`MANY`] large messages, and no vacuum but ours.
async fn with_large_table() -> Session {
    let s = Session::with_queue(r#"{"on_ack": "delete"}"#).await;
    s.run("ALTER TABLE vtq.q SET (autovacuum_enabled = false)").await;
    s.run(&format!(
        "INSERT INTO vtq.q (message) SELECT to_jsonb(repeat('x', 1900)) FROM generate_series(1, {MANY})"
    ))
    .await;
    assert!(s.value::<i64>("SELECT pg_relation_size('vtq.q')").await > 16 << 20);
    s
}

async fn compaction(s: &Session) -> Value {
    s.value::<Value>("SELECT vtq.maintain('q')").await["compaction"].take()
}

#[tokio::test]
async fn an_old_snapshot_does_not_keep_a_table_large() {
    let s = with_large_table().await;
    let forgotten = s.another().await;
    forgotten.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;
    s.run("DELETE FROM vtq.q WHERE msg_id % 400 <> 0").await;
    s.run("SELECT vtq.read('q', '1 h', 4); SELECT vtq.send('q', '1', '{\"a\": 1}', delay => '1 h')").await;
    s.run("VACUUM vtq.q").await;
    let live = s.rows("SELECT * FROM vtq.q ORDER BY msg_id").await;
    assert!(s.value::<i64>("SELECT pg_relation_size('vtq.q')").await > 16 << 20, "vacuum could not help");

    assert_eq!(compaction(&s).await, "done");

    let bytes: i64 = s.value("SELECT pg_total_relation_size('vtq.q')").await;
    assert!(bytes < 1 << 20, "{bytes} bytes");
    assert_eq!(s.rows("SELECT * FROM vtq.q ORDER BY msg_id").await, live);
    assert_eq!(live.as_array().map(Vec::len), Some(12));
    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{400,800}', '{1,1}')").await, [400, 800], "leases hold");
    assert_eq!(s.send().await, i64::from(MANY) + 2, "ids go on");
    forgotten.run("COMMIT").await;
}

#[tokio::test]
async fn many_live_rows_are_not_moved() {
    let s = with_large_table().await;

    assert_eq!(compaction(&s).await, "many live rows");

    assert_eq!(s.count("vtq.q").await, i64::from(MANY));
}

#[tokio::test]
async fn a_table_in_use_is_left_and_soon() {
    let s = with_large_table().await;
    let user = s.another().await;
    s.run("DELETE FROM vtq.q WHERE msg_id > 5").await;
    user.run("BEGIN; SELECT vtq.read('q')").await;

    let started = Instant::now();
    let during = compaction(&s).await;
    let waited = started.elapsed();
    user.run("COMMIT").await;

    assert_eq!(during, "busy");
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    assert_eq!(compaction(&s).await, "done");
    assert_eq!(s.read(9).await, [2, 3, 4, 5]);
}

#[tokio::test]
async fn a_small_table_is_left_alone() {
    let s = Session::with_queue("{}").await;

    let report: Value = s.value("SELECT vtq.maintain('q')").await;

    assert_eq!((&report["compacted"], &report["compaction"]), (&json!(false), &json!("small")));
}

#[tokio::test]
async fn senders_and_workers_lose_nothing_to_a_compaction() {
    let s = with_large_table().await;
    s.run("DELETE FROM vtq.q WHERE msg_id > 5").await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let session = s.another().await;
        sessions.push(tokio::spawn(async move {
            let mut acked = 0;
            for _ in 0..150 {
                session.send().await;
                let ack = "SELECT vtq.ack('q', ARRAY[r.msg_id], ARRAY[r.read_ct]) FROM vtq.read('q') AS r";
                acked += session.values::<i64>(ack).await.len();
            }
            acked
        }));
    }

    let mut compaction = compaction(&s).await;
    while compaction == "busy" {
        compaction = s.value::<Value>("SELECT vtq.maintain('q')").await["compaction"].take();
    }
    let mut acked = 0;
    for session in sessions {
        acked += session.await.unwrap();
    }

    assert_eq!(compaction, "done");
    assert_eq!(acked as i64 + s.count("vtq.q").await, 455);
    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.q WHERE read_ct > 0").await, Vec::<i64>::new());
}

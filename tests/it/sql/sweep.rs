//! Sweeping: what can no longer run leaves, what left no word is written down, what is missing stops nobody.

use serde_json::{Value, json};

use super::session::Session;

async fn swept(s: &Session) -> Value {
    s.row("SELECT dead, abandoned FROM vtq.sweep('q')").await
}

#[tokio::test]
async fn a_message_whose_last_worker_died_says_so() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.send().await;
    s.read(1).await;
    s.make_visible(1).await;

    assert_eq!(swept(&s).await, json!({"dead": 1, "abandoned": 1}));

    let letter = s
        .row(
            "SELECT reason, attempts, headers -> 'vtq_dead_letter' -> 'source' AS source
        FROM vtq.dlq_list('q') JOIN vtq.q_dlq USING (msg_id)",
        )
        .await;
    assert_eq!(letter, json!({"reason": "worker_died", "attempts": 1, "source": "sweep"}));
    let attempt = s.row("SELECT attempt, outcome, vt FROM vtq.attempts('q', 1)").await;
    assert_eq!(attempt, json!({"attempt": 1, "outcome": "abandoned", "vt": null}));
}

#[tokio::test]
async fn a_lapse_with_runs_left_is_recorded_once_and_stays_ready() {
    let s = Session::with_queue("{}").await;
    s.send().await;
    s.read(1).await;
    s.make_visible(1).await;

    assert_eq!(swept(&s).await, json!({"dead": 0, "abandoned": 1}));
    assert_eq!(swept(&s).await, json!({"dead": 0, "abandoned": 0}));

    let read = s.row("SELECT msg_id, attempt FROM vtq.read('q')").await;
    assert_eq!(read, json!({"msg_id": 1, "attempt": 2}));
    assert_eq!(s.values::<String>("SELECT outcome FROM vtq.attempts('q', 1)").await, ["abandoned"]);
}

#[tokio::test]
async fn a_limit_that_is_lowered_below_what_is_spent_exhausts() {
    let s = Session::with_queue("{}").await;
    s.send().await;
    s.run("SELECT vtq.read('q'); SELECT vtq.fail('q', 1, 1, '\"true\"', '0')").await;
    s.run(r#"SELECT vtq.set_queue('q', '{"max_attempts": 1}')"#).await;
    let state = s.row("SELECT ready, exhausted FROM vtq.metrics('q')").await;

    assert_eq!(swept(&s).await, json!({"dead": 1, "abandoned": 0}));

    assert_eq!(state, json!({"ready": 0, "exhausted": 1}));
    let letter = s.row("SELECT reason, error_message FROM vtq.dlq_list('q')").await;
    assert_eq!(letter, json!({"reason": "attempts_exhausted", "error_message": "true"}));
    assert_eq!(s.values::<String>("SELECT outcome FROM vtq.attempts('q', 1)").await, ["failed"]);
}

#[tokio::test]
async fn the_expired_leave_unread() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1', expires_at => now() + interval '1 h')").await;
    s.run("UPDATE vtq.q SET expires_at = now()").await;

    assert_eq!(swept(&s).await, json!({"dead": 1, "abandoned": 0}));

    let letter = s.row("SELECT reason, attempts, read_ct FROM vtq.dlq_list('q')").await;
    assert_eq!(letter, json!({"reason": "expired", "attempts": 0, "read_ct": 0}));
    assert_eq!(s.count("vtq.q_attempts").await, 0);
}

#[tokio::test]
async fn a_run_that_has_begun_outlives_its_deadline() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1', expires_at => now() + interval '1 h'); SELECT vtq.read('q')").await;
    s.run("UPDATE vtq.q SET expires_at = now()").await;

    assert_eq!(swept(&s).await, json!({"dead": 0, "abandoned": 0}));

    assert_eq!(s.values::<i64>("SELECT vtq.extend('q', '{1}', '{1}')").await, [1]);
    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, [1]);
}

#[tokio::test]
async fn what_waits_or_is_held_is_left_alone() {
    let s = Session::with_queue(r#"{"max_attempts": 2}"#).await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3}'); SELECT vtq.send('q', '4', delay => '1 h')").await;
    s.run("SELECT vtq.read('q', qty => 3); SELECT vtq.fail('q', 1, 1), vtq.defer('q', 2, 1, '1 h')").await;
    let before = s.rows("SELECT * FROM vtq.q ORDER BY msg_id").await;

    assert_eq!(swept(&s).await, json!({"dead": 0, "abandoned": 0}));

    assert_eq!(s.rows("SELECT * FROM vtq.q ORDER BY msg_id").await, before);
}

#[tokio::test]
async fn a_message_locked_by_its_worker_is_passed_by() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    let worker = s.another().await;
    s.run("SELECT vtq.send_batch('q', '{1,2}'); SELECT vtq.read('q', qty => 2)").await;
    s.make_visible(1).await;
    s.make_visible(2).await;

    worker.run("BEGIN; SELECT vtq.ack('q', '{1}', '{1}')").await;
    assert_eq!(swept(&s).await, json!({"dead": 1, "abandoned": 1}));
    worker.run("COMMIT").await;

    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.q_dlq").await, [2]);
    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.q_archive").await, [1]);
}

#[tokio::test]
async fn each_level_is_swept_and_no_more_than_asked_for() {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    for level in [0, 1] {
        s.run(&format!(
            "SELECT vtq.send_batch('q', '{{1,2,3}}', priority => {level}, expires_at => now() + interval '1 h')"
        ))
        .await;
    }
    s.run("UPDATE vtq.q SET expires_at = now()").await;

    assert_eq!(s.value::<i64>("SELECT dead FROM vtq.sweep('q', 2)").await, 2);
    assert_eq!(s.value::<i64>("SELECT dead FROM vtq.sweep('q', 3)").await, 3);
    assert_eq!(s.value::<i64>("SELECT dead FROM vtq.sweep('q', 1000)").await, 1);
}

#[tokio::test]
async fn without_its_table_no_dead_letter_is_lost_and_the_others_flow() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3}'); SELECT vtq.read('q', qty => 2); DROP TABLE vtq.q_dlq")
        .await;
    s.make_visible(1).await;
    s.make_visible(2).await;

    assert_eq!(swept(&s).await, json!({"dead": 0, "abandoned": 2}));

    assert_eq!(s.read(9).await, [3], "the others flow");
    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{3}', '{1}')").await, [3]);
    assert!(
        s.value::<bool>("SELECT count(*) = 2 AND bool_and(vt > now() + interval '3 s') FROM vtq.q").await
    );
}

#[tokio::test]
async fn without_its_table_a_doomed_message_waits_longer_each_time() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q'); DROP TABLE vtq.q_dlq").await;
    let mut waits = Vec::new();

    for age in ["0", "1 min", "10 min", "1 day"] {
        s.run(&format!("UPDATE vtq.q SET last_read_at = clock_timestamp() - interval '{age}'")).await;
        s.make_visible(1).await;
        s.run("SELECT vtq.sweep('q')").await;
        waits.push(
            s.value::<i32>("SELECT extract(epoch FROM vt - clock_timestamp())::integer FROM vtq.q").await,
        );
    }

    assert!(waits.is_sorted() && waits[0] >= 3 && waits[2] > 500 && waits[3] <= 3600, "{waits:?}");
}

#[tokio::test]
async fn a_table_built_again_takes_what_waited_for_it() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q'); DROP TABLE vtq.q_dlq").await;
    s.make_visible(1).await;
    s.run("SELECT vtq.sweep('q')").await;

    assert!(!s.value::<bool>("SELECT vtq.create_queue('q')").await);
    s.make_visible(1).await;

    assert_eq!(swept(&s).await, json!({"dead": 1, "abandoned": 0}));
    assert_eq!(s.values::<String>("SELECT reason FROM vtq.dlq_list('q')").await, ["worker_died"]);
}

#[tokio::test]
async fn waiting_for_the_table_gives_nobody_a_lease_nor_another_reason() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q'); SELECT vtq.fail('q', 1, 1, '\"true\"', '0')")
        .await;
    s.run(r#"SELECT vtq.set_queue('q', '{"max_attempts": 1}'); DROP TABLE vtq.q_dlq; SELECT vtq.sweep('q')"#)
        .await;

    // The delivery was settled by the failure: waiting must not bring its lease back to life.
    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, Vec::<i64>::new());
    s.run("SELECT vtq.create_queue('q', '{}')").await;
    s.make_visible(1).await;
    s.run("SELECT vtq.sweep('q')").await;

    let letter = s.row("SELECT reason, error_message FROM vtq.dlq_list('q')").await;
    assert_eq!(letter, json!({"reason": "attempts_exhausted", "error_message": "true"}));
}

#[tokio::test]
async fn every_call_that_needs_the_missing_table_says_how_to_repair_it() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.run("SELECT vtq.send('q', '1', expires_at => now() + interval '1 h')").await;
    s.run("SELECT vtq.read('q'); DROP TABLE vtq.q_dlq").await;
    let calls = [
        "fail('q', 1, 1)",
        "dead_letter('q', 1, 1)",
        "defer('q', 1, 1, '2 h')",
        "redrive('q', 1)",
        "redrive_all('q')",
        "dlq_purge('q', 1)",
        "dlq_list('q')",
        "dlq_show('q', 1)",
        "metrics('q')",
    ];

    for call in calls {
        let refusal = s.refusal(&format!("SELECT vtq.{call}")).await;
        assert!(refusal.starts_with(r#"VT004 queue "q" has no table vtq.q_dlq"#), "{call}: {refusal}");
    }
    assert_eq!(s.values::<i64>("SELECT vtq.extend('q', '{1}', '{1}')").await, [1], "the lease is as it was");
}

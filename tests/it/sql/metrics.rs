//! Metrics: each state counted, ages true, estimates near, one broken queue alone in its trouble.

use serde_json::{Value, json};

use super::session::Session;

const COUNTS: &str = "ready, in_flight, delayed, retrying, exhausted, expired, dead";

/// One message in flight, two delayed, and so on; the numbers are those of [`EACH_STATE`].
async fn with_each_state() -> Session {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 15)").await;
    s.run("SELECT vtq.read('q', '1 h', 15)").await;
    s.run("SELECT vtq.fail('q', id, 1, '{\"class\": \"Boom\"}') FROM generate_series(2, 4) AS id").await;
    s.run("UPDATE vtq.q SET vt = now() - interval '1 s', max_attempts = 1 WHERE msg_id BETWEEN 5 AND 8")
        .await;
    s.run("SELECT vtq.dead_letter('q', id, 1) FROM generate_series(9, 14) AS id").await;
    s.run("SELECT vtq.ack('q', '{15}', '{1}')").await;
    s.run("SELECT vtq.send_batch('q', '{1,2}', delay => '1 h')").await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb), priority => 1) FROM generate_series(1, 7)")
        .await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3,4,5}', expires_at => clock_timestamp() + interval '1 h')")
        .await;
    s.run("UPDATE vtq.q SET expires_at = now() WHERE expires_at IS NOT NULL").await;
    s
}

fn each_state() -> Value {
    json!({"ready": 7, "in_flight": 1, "delayed": 2, "retrying": 3, "exhausted": 4, "expired": 5, "dead": 6})
}

#[tokio::test]
async fn each_state_is_counted() {
    let s = with_each_state().await;

    assert_eq!(s.row(&format!("SELECT {COUNTS} FROM vtq.metrics('q')")).await, each_state());
    assert_eq!(s.row(&format!("SELECT {COUNTS} FROM vtq.metrics('q', true)")).await, each_state());
    assert_eq!(s.row(&format!("SELECT {COUNTS} FROM vtq.metrics_all()")).await, each_state());
}

#[tokio::test]
async fn an_empty_queue_has_zeros_and_no_ages() {
    let s = Session::with_queue("{}").await;

    let row = s
        .row(&format!(
            "SELECT {COUNTS}, oldest_ready_age, oldest_dead_age, last_error_class, sent_total, paused_until,
                pause_reason, estimated, error, table_bytes > 0 AS has_bytes FROM vtq.metrics('q')"
        ))
        .await;

    assert_eq!(
        row,
        json!({"ready": 0, "in_flight": 0, "delayed": 0, "retrying": 0, "exhausted": 0, "expired": 0, "dead": 0,
            "oldest_ready_age": null, "oldest_dead_age": null, "last_error_class": null, "sent_total": 0,
            "paused_until": null, "pause_reason": null, "estimated": false, "error": null, "has_bytes": true})
    );
}

#[tokio::test]
async fn what_was_ever_sent_is_counted_through_ack_and_death() {
    let s = with_each_state().await;
    s.run("SELECT vtq.redrive_all('q')").await;

    assert_eq!(s.value::<i64>("SELECT sent_total FROM vtq.metrics('q')").await, 29);
}

#[tokio::test]
async fn the_oldest_ready_age_is_that_of_a_message_that_could_be_read() {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3,4,5}'); SELECT vtq.send('q', '6', priority => 1)").await;
    // In flight, delayed until just now, exhausted, expired, and two that are ready.
    s.run(
        "UPDATE vtq.q SET ready_at = now() - interval '9 h', vt = now() + interval '1 h', read_ct = 1 WHERE msg_id = 1;
        UPDATE vtq.q SET ready_at = now() + interval '1 h', vt = now() + interval '1 h' WHERE msg_id = 2;
        UPDATE vtq.q SET ready_at = now() - interval '8 h', vt = now() - interval '8 h', read_ct = 5 WHERE msg_id = 3;
        UPDATE vtq.q SET ready_at = now() - interval '7 h', vt = now() - interval '7 h' WHERE msg_id = 4;
        UPDATE vtq.q SET expires_at = now() WHERE msg_id = 4;
        UPDATE vtq.q SET ready_at = now() - interval '2 h', vt = now() - interval '2 h' WHERE msg_id = 5;
        UPDATE vtq.q SET ready_at = now() - interval '1 h', vt = now() - interval '1 h' WHERE msg_id = 6",
    )
    .await;

    let hours: f64 =
        s.value("SELECT extract(epoch FROM oldest_ready_age)::float8 / 3600 FROM vtq.metrics('q')").await;

    assert!((2.0..2.02).contains(&hours), "{hours} h");
}

#[tokio::test]
async fn the_oldest_dead_age_is_that_of_the_first_to_die() {
    let s = with_each_state().await;
    s.run("UPDATE vtq.q_dlq SET dead_lettered_at = now() - interval '3 days' WHERE msg_id = 11").await;

    let days: f64 =
        s.value("SELECT extract(epoch FROM oldest_dead_age)::float8 / 86400 FROM vtq.metrics('q')").await;

    assert!((3.0..3.01).contains(&days), "{days} days");
}

#[tokio::test]
async fn the_last_error_class_is_that_of_the_last_error() {
    let s = with_each_state().await;
    assert_eq!(s.value::<String>("SELECT last_error_class FROM vtq.metrics('q')").await, "Boom");

    s.run("SELECT vtq.fail('q', 1, 1, '\"without a class\"')").await;

    assert_eq!(s.value::<String>("SELECT last_error_class FROM vtq.metrics('q')").await, "failed");
}

#[tokio::test]
async fn estimates_of_fifty_thousand_are_near_and_say_what_they_are() {
    let s = Session::with_queue("{}").await;
    s.run(
        "INSERT INTO vtq.q (message, ready_at, vt)
        SELECT '1', d.at, d.at FROM generate_series(1, 50000) AS n
        CROSS JOIN LATERAL (
            SELECT now() + CASE WHEN n % 5 < 3 THEN interval '-1 min' ELSE interval '1 day' END AS at
        ) AS d",
    )
    .await;
    s.run("SELECT vtq.read('q', '1 h', 100)").await;

    let estimated = s.row("SELECT ready, in_flight, delayed, estimated FROM vtq.metrics('q')").await;
    let exact = s.row("SELECT ready, in_flight, delayed, estimated FROM vtq.metrics('q', true)").await;

    assert_eq!(exact, json!({"ready": 29_900, "in_flight": 100, "delayed": 20_000, "estimated": false}));
    assert_eq!(estimated["estimated"], true);
    for (state, number) in [("ready", 29_900.0), ("delayed", 20_000.0)] {
        let guess = estimated[state].as_f64().unwrap();
        assert!((guess / number - 1.0).abs() < 0.25, "{state}: {guess} for {number}");
    }
}

#[tokio::test]
async fn a_few_ready_ones_are_counted_exactly_beside_a_crowd_of_delayed_ones() {
    let s = Session::with_queue("{}").await;
    s.run(
        "INSERT INTO vtq.q (message, ready_at, vt)
        SELECT '1', now() + interval '1 day', now() + interval '1 day' FROM generate_series(1, 30000)",
    )
    .await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3}'); SELECT vtq.read('q')").await;

    s.run("BEGIN").await;
    let row = s.row("SELECT ready, in_flight, estimated FROM vtq.metrics('q')").await;
    let sql = "SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relid = 'vtq.q'::regclass";
    let sampled: i64 = s.value(sql).await;
    s.run("COMMIT").await;

    assert_eq!(row, json!({"ready": 2, "in_flight": 1, "estimated": true}));
    assert!(sampled < 20_000, "an estimate samples the table, and this one read {sampled} rows");
}

#[tokio::test]
async fn a_broken_queue_says_why_and_hides_no_other() {
    let s = Session::new().await;
    for queue in ["a", "b", "c", "d", "e", "f"] {
        s.run(&format!("SELECT vtq.create_queue('{queue}'); SELECT vtq.send('{queue}', '1')")).await;
    }
    s.run("DROP TABLE vtq.b; DROP TABLE vtq.c_dlq; DROP TABLE vtq.d_attempts").await;
    s.run("ALTER TABLE vtq.e RENAME COLUMN vt TO vt2").await;

    let rows = s.rows("SELECT queue_name, ready, error IS NOT NULL AS broken FROM vtq.metrics_all()").await;

    let whole = |queue: &str| json!({"queue_name": queue, "ready": 1, "broken": false});
    let broken = |queue: &str| json!({"queue_name": queue, "ready": null, "broken": true});
    assert_eq!(rows, json!([whole("a"), broken("b"), broken("c"), broken("d"), broken("e"), whole("f")]));
}

#[tokio::test]
async fn states_of_a_row_do_not_depend_on_the_session() {
    let s = with_each_state().await;

    s.run("SET timezone = 'Asia/Kolkata'; SET datestyle = 'German'").await;
    s.run("SET intervalstyle = 'iso_8601'; SET extra_float_digits = 0").await;

    assert_eq!(s.row(&format!("SELECT {COUNTS} FROM vtq.metrics('q', true)")).await, each_state());
}

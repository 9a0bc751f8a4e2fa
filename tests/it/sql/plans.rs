//! Plans do not depend on luck: whatever the table holds and whatever the statistics say of it, the hot statements
//! walk an index, claims are HOT, and a million delayed messages cost a reader nothing.

use serde_json::{Value, json};
use vtq_tests::explain;

use super::session::Session;

/// The verbs of a worker's life, on whatever queue `q` holds.
const HOT_VERBS: [&str; 13] = [
    "SELECT vtq.send('q', '1')",
    "SELECT vtq.send_batch('q', '{1,2,3,4,5,6,7,8,9}')",
    "SELECT vtq.read('q', qty => 3)",
    "CREATE TEMP TABLE held ON COMMIT DROP AS SELECT msg_id, read_ct FROM vtq.read('q', '1 min', 7, \
     ARRAY['-infinity']::timestamptz[], '{0}')",
    "SELECT vtq.extend('q', array_agg(msg_id), array_agg(read_ct)) FROM held",
    "SELECT vtq.ack('q', array_agg(msg_id), array_agg(read_ct)) FROM (SELECT * FROM held LIMIT 2) AS h",
    "SELECT vtq.fail('q', msg_id, read_ct, '\"x\"', '0') FROM held OFFSET 2 LIMIT 1",
    "SELECT vtq.defer('q', msg_id, read_ct, '0') FROM held OFFSET 3 LIMIT 1",
    "SELECT vtq.dead_letter('q', msg_id, read_ct) FROM held OFFSET 4 LIMIT 1",
    "SELECT vtq.release('q', array_agg(msg_id), array_agg(read_ct)) FROM held",
    "SELECT vtq.sweep('q')",
    "SELECT vtq.peek('q', 5)",
    "SELECT vtq._doze('{q}', 'w', '1 min')",
];

/// Runs the hot verbs in one transaction and expects none of them to scan a table of the queue.
async fn assert_no_scans(s: &Session, state: &str) {
    let counters = "SELECT coalesce(jsonb_object_agg(relname, seq_scan), '{}') FROM pg_stat_xact_user_tables
        WHERE schemaname = 'vtq' AND relname ~ '^_?q([_.]|$)' AND seq_scan > 0";
    s.run("BEGIN").await;
    for verb in HOT_VERBS {
        s.run(verb).await;
        assert_eq!(s.value::<Value>(counters).await, json!({}), "{state}: {verb}");
    }
    s.run("ROLLBACK").await;
}

/// As [`assert_no_scans`], with the statistics that the queue was created with and with those of what it holds now.
async fn assert_no_scans_whatever_the_statistics(s: &Session, state: &str) {
    assert_no_scans(s, &format!("{state}, statistics of an empty table")).await;
    s.run("ANALYZE vtq.q; ANALYZE vtq.q_dlq; ANALYZE vtq.q_attempts; ANALYZE vtq.q_archive").await;
    assert_no_scans(s, &format!("{state}, statistics of its own")).await;
    // A session that has run them often has generic plans where they are cheaper.
    for _ in 0..3 {
        assert_no_scans(s, &format!("{state}, plans in use")).await;
    }
}

/// A queue that no autovacuum looks at, filled by a plain INSERT.
async fn filled(rows: i32, ready_at: &str) -> Session {
    let s = Session::with_queue(r#"{"unlogged": true}"#).await;
    s.run("ALTER TABLE vtq.q SET (autovacuum_enabled = false); VACUUM ANALYZE vtq.q").await;
    s.run(&format!(
        "INSERT INTO vtq.q (message, ready_at, vt) SELECT '1', {ready_at}, {ready_at} FROM generate_series(1, {rows})"
    ))
    .await;
    s
}

#[tokio::test]
async fn an_empty_table_is_not_scanned() {
    let s = filled(0, "now()").await;

    assert_no_scans_whatever_the_statistics(&s, "empty").await;
}

#[tokio::test]
async fn a_hundred_thousand_ready_messages_are_not_scanned() {
    let s = filled(100_000, "now()").await;

    assert_no_scans_whatever_the_statistics(&s, "ready").await;
}

#[tokio::test]
async fn three_hundred_thousand_delayed_messages_are_not_scanned() {
    let s = filled(300_000, "now() + interval '1 day'").await;

    assert_no_scans_whatever_the_statistics(&s, "delayed").await;
}

#[tokio::test]
async fn a_table_of_dead_rows_is_not_scanned() {
    let s = filled(50_000, "now()").await;
    s.run("DELETE FROM vtq.q").await;

    assert_no_scans_whatever_the_statistics(&s, "dead").await;
}

#[tokio::test]
async fn statistics_of_a_full_table_do_not_mislead_an_empty_one() {
    let s = filled(20_000, "now()").await;
    s.run("ANALYZE vtq.q; TRUNCATE vtq.q").await;

    assert_no_scans(&s, "emptied").await;
}

#[tokio::test]
async fn a_million_delayed_messages_cost_a_reader_nothing() {
    let s = filled(1_000_000, "now() + interval '1 day'").await;
    let idle = buffers(&s, "SELECT * FROM vtq.read('q')").await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 200)").await;

    let first = buffers(&s, "SELECT * FROM vtq.read('q')").await;
    let many = buffers(&s, "SELECT * FROM vtq.read('q', qty => 100)").await;
    let sweep = buffers(&s, "SELECT * FROM vtq.sweep('q')").await;

    assert!(idle < 200 && first < 200, "{idle} buffers for nothing, {first} for one message");
    assert!(many < 2000 && sweep < 2000, "{many} buffers for a hundred, {sweep} for a sweep");
    assert_eq!(s.read(200).await.len(), 99);
}

/// The buffers that a statement and the functions in it touch, when it runs for the second time in its session.
async fn buffers(s: &Session, sql: &str) -> u64 {
    // The first run in a session also reads the catalogue, and compiles the functions.
    s.run(&format!("BEGIN; {sql}; ROLLBACK")).await;
    let plan = explain(&s.client, sql, &[]).await;
    let of = |key: &str| plan["Plan"][key].as_u64().unwrap();
    of("Shared Hit Blocks") + of("Shared Read Blocks")
}

#[tokio::test]
async fn claims_and_heartbeats_are_hot() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg(to_jsonb(repeat('x', 200)))) FROM generate_series(1, 1000)").await;

    s.run("BEGIN; SELECT vtq.read('q', '1 h', 100) FROM generate_series(1, 10)").await;
    s.run("SELECT vtq.extend('q', array_agg(msg_id), array_agg(read_ct)) FROM vtq.q").await;
    s.run("SELECT vtq.release('q', array_agg(msg_id), array_agg(read_ct)) FROM vtq.q").await;
    let updates = s
        .row("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relid = 'vtq.q'::regclass")
        .await;
    s.run("COMMIT").await;

    assert_eq!(updates["n_tup_upd"], 3000);
    // A page that is full of rows not yet pruned sends one elsewhere now and then; the claims themselves never.
    let hot = updates["n_tup_hot_upd"].as_i64().unwrap();
    assert!(hot > 1000, "{updates}");
}

#[tokio::test]
async fn a_claim_touches_no_index() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg(to_jsonb(repeat('x', 200)))) FROM generate_series(1, 1000)").await;

    s.run("BEGIN; SELECT vtq.read('q', '1 h', 100) FROM generate_series(1, 10)").await;
    let updates = s
        .row("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relid = 'vtq.q'::regclass")
        .await;
    s.run("COMMIT").await;

    assert_eq!(updates, json!({"n_tup_upd": 1000, "n_tup_hot_upd": 1000}));
}

#[tokio::test]
async fn live_and_dead_tables_are_made_for_their_use() {
    let s = Session::with_queue("{}").await;

    let options = s
        .rows("SELECT c.relname, o.option_name, o.option_value FROM pg_class AS c
            CROSS JOIN LATERAL pg_options_to_table(c.reloptions) AS o
            WHERE c.oid IN ('vtq.q'::regclass, 'vtq.q_dlq'::regclass)
                AND o.option_name IN ('fillfactor', 'autovacuum_vacuum_scale_factor') ORDER BY 1, 2")
        .await;

    let one = |table: &str, name: &str, value: &str| json!({"relname": table, "option_name": name, "option_value": value});
    assert_eq!(
        options,
        json!([one("q", "autovacuum_vacuum_scale_factor", "0"), one("q", "fillfactor", "50"),
            one("q_dlq", "autovacuum_vacuum_scale_factor", "0.02")])
    );
}

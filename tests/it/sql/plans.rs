//! Plans do not depend on luck: whatever the table holds and whatever the statistics say of it, the hot statements
//! walk an index, claims are HOT, and a million delayed messages cost a reader nothing.

use serde_json::{Value, json};
use vtq_tests::explain;

use super::session::Session;

/// The verbs of a worker's life, on whatever queue `q` holds; the last ones are stale, or come for the second time.
const HOT_VERBS: [&str; 17] = [
    "vtq.send('q', '1')",
    "vtq.send_batch('q', '{1,2,3,4,5,6,7,8,9}')",
    "vtq.read('q', qty => 3)",
    "vtq.read('q', '1 min', 7, ARRAY['-infinity']::timestamptz[], '{0}')",
    "vtq.extend('q', (SELECT array_agg(msg_id) FROM held), (SELECT array_agg(read_ct) FROM held))",
    "vtq.ack('q', (SELECT array_agg(msg_id) FROM held WHERE place > 5), '{1,1}')",
    "vtq.fail('q', (SELECT msg_id FROM held WHERE place = 1), 1, '\"x\"', '0')",
    "vtq.defer('q', (SELECT msg_id FROM held WHERE place = 2), 1, '0')",
    "vtq.dead_letter('q', (SELECT msg_id FROM held WHERE place = 3), 1)",
    "vtq.release('q', (SELECT array_agg(msg_id) FROM held), (SELECT array_agg(read_ct) FROM held))",
    "vtq.sweep('q')",
    "vtq.peek('q', 5)",
    "vtq._doze('{q}', 'w', '1 min')",
    "vtq.ack('q', '{1}', '{7}')",
    "vtq.fail('q', (SELECT msg_id FROM held WHERE place = 1), 1)",
    "vtq.defer('q', 1, 7, '0')",
    "vtq.dead_letter('q', 1, 7)",
];

/// How often each table of the queue was scanned by this session's recent statements.
async fn scans(s: &Session) -> Value {
    s.value(
        "SELECT coalesce(jsonb_object_agg(relname, seq_scan), '{}') FROM pg_stat_xact_user_tables
        WHERE schemaname = 'vtq' AND relname ~ '^_?q([_.]|$)' AND seq_scan > 0",
    )
    .await
}

/// Runs the hot verbs in one transaction and expects none of them to scan a table of the queue.
async fn assert_no_scans(s: &Session, state: &str) {
    s.run("BEGIN; SELECT vtq.send_batch('q', '{1,2,3,4,5,6,7,8,9}')").await;
    s.run(
        "CREATE TEMP TABLE held ON COMMIT DROP AS
        SELECT row_number() OVER () AS place, msg_id, read_ct FROM vtq.read('q', qty => 7)",
    )
    .await;
    let before = scans(s).await;
    for verb in HOT_VERBS {
        s.run(&format!("SELECT * FROM {verb}")).await;
        assert_eq!(scans(s).await, before, "{state}: {verb}");
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
    s.run("ALTER TABLE vtq.q SET (autovacuum_enabled = false)").await;
    s.run("VACUUM ANALYZE vtq.q").await;
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

/// The verbs that a session plans once, while the queue is small, are as good when it is large: what walks all of a small
/// table, because that is cheap, would walk all of a large one.
#[tokio::test]
async fn plans_for_a_small_queue_are_good_for_a_large_one() {
    for rows in [0, 200] {
        plans_hold_when_the_queue_grows_from(rows).await;
    }
}

async fn plans_hold_when_the_queue_grows_from(rows: i32) {
    let s = filled(rows, "now()").await;
    // A session's first temporary table has it plan everything anew: it comes before the plans that are to be kept.
    s.run("ANALYZE vtq.q; CREATE TEMP TABLE first ()").await;
    assert_no_scans(&s, &format!("{rows} rows")).await;
    s.run("INSERT INTO vtq.q (message) SELECT '1' FROM generate_series(1, 50000)").await;
    s.run("CREATE TABLE held AS SELECT row_number() OVER () AS place, msg_id, read_ct FROM vtq.read('q', qty => 7)").await;

    for verb in HOT_VERBS {
        let buffers = buffers(&s, &format!("SELECT * FROM {verb}")).await;

        // A sweep looks at the first ten thousand places.
        let limit = if verb.contains("sweep") { 15_000 } else { 1000 };
        assert!(buffers < limit, "{buffers} buffers for {verb}, planned for {rows} rows");
    }
}

/// The state that a queue is in most of the time: analyzed when nothing was in it. To the planner all of its indexes are
/// alike then, and one that has a column somewhere is as good as one that begins with it.
#[tokio::test]
async fn plans_for_a_queue_analyzed_when_empty_are_good_for_a_full_one() {
    let s = filled(0, "now()").await;
    let leases = |qty: i32| {
        format!(
            "(SELECT coalesce(array_agg(msg_id), '{{}}') FROM held WHERE place <= {qty}),
            (SELECT coalesce(array_agg(read_ct), '{{}}') FROM held WHERE place <= {qty})"
        )
    };
    s.run("CREATE TEMP TABLE held (place int, msg_id bigint, read_ct int)").await;
    let verbs = [
        "vtq.read('q', qty => 100)".to_owned(),
        "vtq.read('q', '1 min', 100, ARRAY['-infinity']::timestamptz[], '{0}')".to_owned(),
        format!("vtq.extend('q', {})", leases(100)),
        format!("vtq.ack('q', {})", leases(100)),
        format!("vtq.release('q', {})", leases(100)),
        "vtq.defer('q', 1, 1, '0')".to_owned(),
        "vtq.fail('q', 2, 1)".to_owned(),
        "vtq.send('q', '1', unique_key => 'u1')".to_owned(),
        "vtq.send('q', '1', unique_key => 'u2', on_conflict => 'replace')".to_owned(),
        "vtq.cancel('q', 3)".to_owned(),
        "vtq.run_now('q', 4)".to_owned(),
        "vtq._doze('{q}', 'w', '1 min')".to_owned(),
        "vtq.peek('q', 100)".to_owned(),
    ];
    for verb in &verbs {
        s.run(&format!("SELECT {verb}")).await;
    }
    // Delayed ones of many groups among them, which are yet to be admitted.
    s.run(
        "INSERT INTO vtq.q (message) SELECT '1' FROM generate_series(1, 50000);
        SELECT count(*) FROM vtq.send_batch('q', array_fill('1'::jsonb, ARRAY[50000]), delay => '1 day',
            group_keys => ARRAY(SELECT 'g' || i FROM generate_series(1, 50000) AS i));
        SELECT count(*) FROM vtq.send_batch('q', array_fill('1'::jsonb, ARRAY[50000]),
            unique_keys => ARRAY(SELECT 'u' || i FROM generate_series(1, 50000) AS i));
        INSERT INTO held SELECT row_number() OVER (), msg_id, read_ct FROM vtq.read('q', qty => 200)",
    )
    .await;

    for verb in &verbs {
        let buffers = buffers(&s, &format!("SELECT {verb}")).await;

        assert!(buffers < 3000, "{buffers} buffers for {verb}");
    }
}

#[tokio::test]
async fn admission_does_not_walk_all_arrivals() {
    let s = Session::with_queue(r#"{"unlogged": true}"#).await;
    s.run("ALTER TABLE vtq.q SET (autovacuum_enabled = false)").await;
    // Plans the admission while it has little to do.
    s.run("SELECT vtq.send('q', '1', group_key => 'a'); SELECT * FROM vtq.read('q')").await;
    s.run(
        "SELECT count(*) FROM vtq.send_batch(
            'q', array_fill('1'::jsonb, ARRAY[60000]), group_keys => array_fill('a'::text, ARRAY[60000]))",
    )
    .await;

    let buffers = buffers(&s, "SELECT * FROM vtq.read('q')").await;

    assert!(buffers < 30_000, "{buffers} buffers to admit a part of sixty thousand");
}

/// The buffers that a statement and the functions in it touch, when it runs for the second time in its session.
pub(super) async fn buffers(s: &Session, sql: &str) -> u64 {
    // The first run in a session also reads the catalogue, and compiles the functions.
    s.run(&format!("BEGIN; {sql}; ROLLBACK")).await;
    let plan = explain(&s.client, sql, &[]).await;
    let of = |key: &str| plan["Plan"][key].as_u64().unwrap();
    of("Shared Hit Blocks") + of("Shared Read Blocks")
}

#[tokio::test]
async fn claims_and_heartbeats_are_hot() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg(to_jsonb(repeat('x', 200)))) FROM generate_series(1, 1000)")
        .await;

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
    s.run("SELECT vtq.send_batch('q', array_agg(to_jsonb(repeat('x', 200)))) FROM generate_series(1, 1000)")
        .await;

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
        .rows(
            "SELECT c.relname, o.option_name, o.option_value FROM pg_class AS c
            CROSS JOIN LATERAL pg_options_to_table(c.reloptions) AS o
            WHERE c.oid IN ('vtq.q'::regclass, 'vtq.q_dlq'::regclass)
                AND o.option_name IN ('fillfactor', 'autovacuum_vacuum_scale_factor') ORDER BY 1, 2",
        )
        .await;

    let one = |table: &str, name: &str, value: &str| json!({"relname": table, "option_name": name, "option_value": value});
    assert_eq!(
        options,
        json!([
            one("q", "autovacuum_vacuum_scale_factor", "0"),
            one("q", "fillfactor", "50"),
            one("q_dlq", "autovacuum_vacuum_scale_factor", "0.02")
        ])
    );
}

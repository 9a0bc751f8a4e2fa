//! Maintenance: retention and partitions.

use serde_json::{Value, json};

use super::session::Session;

async fn maintained(s: &Session) -> Value {
    s.value("SELECT vtq.maintain('q')").await
}

/// The days of the archive's partitions, in days from today.
async fn days(s: &Session) -> Vec<i32> {
    s.values(
        "SELECT right(c.relname, 8)::date - (clock_timestamp() AT TIME ZONE 'UTC')::date FROM pg_inherits AS i
        JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'vtq.q_archive'::regclass ORDER BY 1",
    )
    .await
}

/// Makes an archive partition of a day in the past, with one row.
async fn add_day(s: &Session, days_ago: i32) {
    s.run(&format!(
        "SET timezone = 'UTC';
        DO $$
        DECLARE
            day date := clock_timestamp()::date - {days_ago};
        BEGIN
            EXECUTE format('CREATE TABLE vtq.%I PARTITION OF vtq.q_archive FOR VALUES FROM (%L) TO (%L)',
                '_q.' || to_char(day, 'YYYYMMDD'), day, day + 1);
            INSERT INTO vtq.q_archive (msg_id, archived_at, enqueued_at, read_ct, refunded_ct, priority, message)
            VALUES ({days_ago}, day + interval '12 h', day, 1, 0, 0, '1');
        END $$"
    ))
    .await;
}

#[tokio::test]
async fn partitions_are_made_ahead() {
    let s = Session::with_queue("{}").await;
    assert_eq!(days(&s).await, (0..=7).collect::<Vec<i32>>());
    // As if the last maintenance had been five days ago.
    s.run("DO $$ DECLARE t regclass; BEGIN
        FOR t IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'vtq.q_archive'::regclass
            AND inhrelid::regclass::text > 'vtq.\"_q.' || to_char(now() + interval '2 days', 'YYYYMMDD') || '\"'
        LOOP EXECUTE 'DROP TABLE ' || t; END LOOP;
        UPDATE vtq._queue SET archive_until = current_date + 3; END $$").await;
    assert_eq!(days(&s).await, [0, 1, 2]);

    assert_eq!(maintained(&s).await["ran"], true);

    assert_eq!(days(&s).await, (0..=7).collect::<Vec<i32>>());
    assert!(
        s.value::<bool>("SELECT archive_until = (now() AT TIME ZONE 'UTC')::date + 8 FROM vtq._queue").await
    );
}

#[tokio::test]
async fn an_ack_after_a_long_silence_makes_its_own_partition() {
    let s = Session::with_queue("{}").await;
    s.run(
        "DO $$ DECLARE t regclass; BEGIN
        FOR t IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'vtq.q_archive'::regclass
        LOOP EXECUTE 'DROP TABLE ' || t; END LOOP;
        UPDATE vtq._queue SET archive_until = now() - interval '3 days'; END $$",
    )
    .await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;

    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, [1]);

    assert_eq!(s.count("vtq.q_archive").await, 1);
}

#[tokio::test]
async fn archived_days_past_their_retention_are_dropped() {
    let s = Session::with_queue(r#"{"archive_retention": "7 days"}"#).await;
    for days_ago in [1, 7, 9, 400] {
        add_day(&s, days_ago).await;
    }

    let report = maintained(&s).await;

    assert_eq!(report["partitions_dropped"], 2);
    // Of the seventh day back, the evening is not yet seven days old.
    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.q_archive ORDER BY 1").await, [1, 7]);
    assert_eq!(s.count("pg_class WHERE relkind = 'r' AND relname ~ '^_q\\.'").await, 10);
}

#[tokio::test]
async fn a_partition_that_somebody_else_attached_is_kept() {
    let s = Session::with_queue("{}").await;
    s.run("CREATE TABLE legacy PARTITION OF vtq.q_archive FOR VALUES FROM ('1990-01-01') TO ('2000-01-01')")
        .await;
    // However the catalogue is joined, no other table's name is taken for a day.
    s.run("SET enable_nestloop = off; SET enable_indexscan = off; CREATE TABLE public.\"a.20269999\" ()")
        .await;
    add_day(&s, 400).await;

    assert_eq!(maintained(&s).await["partitions_dropped"], 1);

    assert_eq!(s.count("legacy").await, 0);
}

#[tokio::test]
async fn an_archive_without_retention_is_kept() {
    let s = Session::with_queue(r#"{"archive_retention": null}"#).await;
    add_day(&s, 4000).await;

    assert_eq!(maintained(&s).await["partitions_dropped"], 0);

    assert_eq!(s.count("vtq.q_archive").await, 1);
}

#[tokio::test]
async fn an_archive_that_is_being_read_is_left_for_the_next_time() {
    let s = Session::with_queue("{}").await;
    let reader = s.another().await;
    add_day(&s, 400).await;
    reader.run("BEGIN; SELECT FROM vtq.q_archive").await;

    let during = maintained(&s).await;
    reader.run("COMMIT").await;

    assert_eq!((&during["ran"], &during["partitions_dropped"]), (&json!(true), &json!(0)));
    assert_eq!(maintained(&s).await["partitions_dropped"], 1);
}

#[tokio::test]
async fn attempts_go_with_age_but_not_those_of_a_message_that_is_live_or_dead() {
    let s = Session::with_queue(r#"{"attempts_retention": "10 days"}"#).await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3,4}'); SELECT vtq.read('q', qty => 4)").await;
    s.run("SELECT vtq.fail('q', id, 1, NULL, '0') FROM generate_series(1, 4) AS id").await;
    s.run("SELECT vtq.read('q', qty => 4)").await;
    s.run("SELECT vtq.dead_letter('q', 2, 2); SELECT vtq.ack('q', '{3,4}', '{2,2}')").await;
    s.run("UPDATE vtq.q_attempts SET ended_at = now() - interval '11 days' WHERE msg_id <> 4").await;

    let report = maintained(&s).await;

    assert_eq!(report["attempts_removed"], 1);
    assert_eq!(s.values::<i64>("SELECT DISTINCT msg_id FROM vtq.q_attempts ORDER BY 1").await, [1, 2, 4]);
}

#[tokio::test]
async fn attempts_without_retention_are_kept() {
    let s = Session::with_queue(r#"{"attempts_retention": null}"#).await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;
    s.run("SELECT vtq.release('q', '{1}', '{1}'); SELECT vtq.cancel('q', 1)").await;
    s.run("UPDATE vtq.q_attempts SET ended_at = '2001-01-01'").await;

    assert_eq!(maintained(&s).await["attempts_removed"], 0);

    assert_eq!(s.count("vtq.q_attempts").await, 1);
}

#[tokio::test]
async fn dead_letters_have_a_retention_of_their_own() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2}')").await;
    s.run("SELECT vtq.dead_letter('q', r.msg_id, 1) FROM vtq.read('q', qty => 2) AS r").await;
    s.run("UPDATE vtq.q_dlq SET dead_lettered_at = '2001-01-01' WHERE msg_id = 1").await;
    assert_eq!(maintained(&s).await["dead_removed"], 0, "by default they are kept for ever");
    s.run(r#"SELECT vtq.set_queue('q', '{"dlq_retention": "14 days"}')"#).await;

    assert_eq!(maintained(&s).await["dead_removed"], 1);

    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.q_dlq").await, [2]);
}

#[tokio::test]
async fn one_session_at_a_time_maintains_a_queue() {
    let a = Session::with_queue("{}").await;
    let b = a.another().await;
    a.run("BEGIN; SELECT vtq.maintain('q')").await;

    assert_eq!(maintained(&b).await, json!({"ran": false}));
    a.run("COMMIT").await;

    assert_eq!(maintained(&b).await["ran"], true);
}

#[tokio::test]
async fn messages_of_no_level_are_given_the_last_one() {
    let s = Session::with_queue(r#"{"priorities": [5, 0]}"#).await;
    s.run("INSERT INTO vtq.q (message, priority) SELECT '1', unnest('{7,3,-32768,32767,5}'::smallint[])")
        .await;
    assert_eq!(s.read(9).await, [5]);

    maintained(&s).await;

    assert_eq!(s.read(9).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_queue_without_its_dead_letters_is_maintained_as_far_as_can_be() {
    let s = Session::with_queue(r#"{"dlq_retention": "14 days"}"#).await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;
    s.run("SELECT vtq.release('q', '{1}', '{1}'); SELECT vtq.cancel('q', 1)").await;
    s.run("UPDATE vtq.q_attempts SET ended_at = '2001-01-01'; DROP TABLE vtq.q_dlq").await;
    add_day(&s, 400).await;

    let report = maintained(&s).await;

    assert_eq!((&report["ran"], &report["partitions_dropped"]), (&json!(true), &json!(1)));
    // Whose they are cannot be told.
    assert_eq!(s.count("vtq.q_attempts").await, 1);
}

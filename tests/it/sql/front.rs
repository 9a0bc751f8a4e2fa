//! The front: how far the workers of a queue tell each other that its line is handed out. A hint, which may be wrong.

use super::plans::buffers;
use super::privileges::Role;
use super::session::Session;

/// A worker's read behind a floor that lies before everything.
fn read(worker: i32, qty: i32) -> String {
    format!("SELECT msg_id FROM vtq.read('q', '30 s', {qty}, '{{-infinity}}', '{{0}}', {worker})")
}

/// A worker's read from the front of the line.
fn read_all(worker: i32, qty: i32) -> String {
    format!("SELECT msg_id FROM vtq.read('q', '30 s', {qty}, NULL, NULL, {worker})")
}

/// A queue with messages that became due one after the other, a millisecond apart.
async fn filled(options: &str, rows: i32) -> Session {
    let s = Session::with_queue(options).await;
    s.run(&format!(
        "ALTER TABLE vtq.q SET (autovacuum_enabled = false);
        INSERT INTO vtq.q (message, ready_at, vt)
        SELECT '1', at, at FROM generate_series(1, {rows}) AS i, LATERAL (
            SELECT now() - interval '1 min' + i * interval '1 ms' AS at
        ) AS due"
    ))
    .await;
    s
}

/// Where the front is: which message it points to, null for none.
async fn front(s: &Session) -> Option<i64> {
    s.value(
        "SELECT (SELECT m.msg_id FROM vtq.q AS m WHERE m.ready_at = 'epoch'::timestamptz + f.at * interval '1 us')
        FROM pg_sequence_last_value('vtq._q_front') AS f (at)",
    )
    .await
}

#[tokio::test]
async fn a_worker_does_not_walk_past_what_the_others_were_given() {
    let s = filled("{}", 60_000).await;

    for _ in 0..5 {
        s.run(&read_all(1, 10_000)).await;
    }

    let walked = buffers(&s, &read(2, 10)).await;
    assert!(walked < 300, "{walked} buffers");
    assert_eq!(s.values::<i64>(&read(2, 3)).await.len(), 3);
}

#[tokio::test]
async fn the_front_shows_before_the_commit() {
    let s = filled("{}", 100).await;
    let other = s.another().await;
    s.run("BEGIN").await;
    s.run(&read_all(1, 50)).await;

    assert_eq!(front(&other).await, Some(50));
    assert_eq!(other.values::<i64>(&read(2, 3)).await, [51, 52, 53]);
    s.run("ROLLBACK").await;
}

/// It came too late for the front, as for a floor.
#[tokio::test]
async fn what_a_rollback_leaves_before_the_front_is_found_from_the_front_of_the_line() {
    let s = filled("{}", 100).await;
    s.run("BEGIN").await;
    s.run(&read_all(1, 50)).await;
    s.run("ROLLBACK").await;

    assert_eq!(s.values::<i64>(&read_all(2, 1000)).await, (1..=100).collect::<Vec<i64>>());
}

#[tokio::test]
async fn others_of_the_same_instant_are_not_passed_over() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 30)").await;

    s.run(&read_all(1, 10)).await;

    assert_eq!(s.values::<i64>(&read(2, 100)).await, (11..=30).collect::<Vec<i64>>());
}

#[tokio::test]
async fn a_floor_behind_the_front_holds() {
    let s = filled("{}", 100).await;
    s.run(&read_all(1, 20)).await;

    let behind: Vec<i64> = s
        .values(
            "SELECT msg_id FROM vtq.read('q', '30 s', 2,
                ARRAY[(SELECT ready_at FROM vtq.q WHERE msg_id = 60)], '{60}', 2)",
        )
        .await;

    assert_eq!(behind, [61, 62]);
}

/// A clock that was put back leaves a front of the future, which would hide everything until then.
#[tokio::test]
async fn a_front_of_the_future_is_ignored_and_put_right() {
    let s = filled("{}", 100).await;
    s.run("SELECT setval('vtq._q_front', (extract(epoch FROM now() + interval '1 day') * 1000000)::bigint)")
        .await;

    assert_eq!(s.values::<i64>(&read(1, 20)).await, (1..=20).collect::<Vec<i64>>());
    assert_eq!(front(&s).await, Some(20));
}

#[tokio::test]
async fn it_moves_forward_in_steps_and_for_workers_only() {
    let s = filled("{}", 100).await;

    s.run("SELECT vtq.read('q', qty => 20)").await;
    assert_eq!(front(&s).await, None);

    s.run(&read(1, 20)).await;
    assert_eq!(front(&s).await, Some(40));
    // Nine milliseconds further.
    s.run(&read(1, 9)).await;
    assert_eq!(front(&s).await, Some(40));
    s.run(&read(1, 1)).await;
    assert_eq!(front(&s).await, Some(50));
    // What lies before it is handed out again, and does not move it back.
    s.run("SELECT vtq.release('q', '{1}', '{1}')").await;
    assert_eq!(s.values::<i64>(&read_all(1, 1)).await, [1]);
    assert_eq!(front(&s).await, Some(50));
}

#[tokio::test]
async fn a_queue_of_several_levels_has_none() {
    let s = filled(r#"{"priorities": [1, 0]}"#, 100).await;

    s.run(&read_all(1, 50)).await;

    assert_eq!(front(&s).await, None);
}

/// Such as a role whose grants are older than the front.
#[tokio::test]
async fn a_worker_that_may_not_move_it_reads_without_it() {
    let s = filled("{}", 100).await;
    let role = Role::create(&s, "worker").await;
    s.run(&format!(
        "GRANT USAGE ON SCHEMA vtq TO {0}; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA vtq TO {0};
        GRANT SELECT ON vtq._queue TO {0}; GRANT SELECT, UPDATE, DELETE ON vtq.q TO {0};
        GRANT SELECT, INSERT, UPDATE ON vtq.q_attempts TO {0}; SET ROLE {0}",
        role.name()
    ))
    .await;

    assert_eq!(s.values::<i64>(&read(1, 20)).await, (1..=20).collect::<Vec<i64>>());
    s.run("RESET ROLE").await;
    assert_eq!(front(&s).await, None);
    role.drop(&s).await;
}

#[tokio::test]
async fn whoever_may_claim_from_a_queue_may_move_a_front_that_is_built_later() {
    let s = filled("{}", 100).await;
    let role = Role::create(&s, "worker").await;
    s.run(&format!(
        "GRANT SELECT, UPDATE ON vtq.q TO {}; DROP SEQUENCE vtq._q_front; SELECT vtq.create_queue('q')",
        role.name()
    ))
    .await;

    let may: bool =
        s.value(&format!("SELECT has_sequence_privilege('{}', 'vtq._q_front', 'UPDATE')", role.name())).await;

    assert!(may);
    role.drop(&s).await;
}

#[tokio::test]
async fn it_goes_with_its_queue() {
    let s = filled("{}", 10).await;
    s.run(&read_all(1, 10)).await;

    s.run("SELECT vtq.drop_queue('q')").await;
    let left: i64 = s
        .value("SELECT count(*) FROM pg_class WHERE relnamespace = 'vtq'::regnamespace AND relname ~ '^_q_'")
        .await;
    s.run("SELECT vtq.create_queue('q')").await;

    assert_eq!((left, front(&s).await), (0, None));
}

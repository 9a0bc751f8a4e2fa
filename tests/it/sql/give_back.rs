//! Giving back: deferred and released deliveries do not count as attempts.

use serde_json::json;

use super::session::Session;

#[tokio::test]
async fn a_deferred_delivery_is_refunded_and_due_after_its_delay() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.send().await;
    s.read(1).await;

    let answer = s
        .row(
            "SELECT outcome, vt - clock_timestamp() BETWEEN '55 s' AND '60 s' AS due
            FROM vtq.defer('q', 1, 1, '1 min', 'busy')",
        )
        .await;

    assert_eq!(answer, json!({"outcome": "deferred", "due": true}));
    let row = s
        .row(
            "SELECT m.read_ct, m.refunded_ct, m.vt = m.ready_at AS free, a.attempt, a.outcome, a.reason,
            a.vt = m.vt AS same, a.error_message FROM vtq.q AS m JOIN vtq.q_attempts AS a USING (msg_id)",
        )
        .await;
    assert_eq!(
        row,
        json!({"read_ct": 1, "refunded_ct": 1, "free": true, "attempt": 1, "outcome": "deferred", "reason": "busy",
            "same": true, "error_message": null})
    );
    s.make_visible(1).await;
    let read = s.row("SELECT read_ct, attempt FROM vtq.read('q')").await;
    assert_eq!(read, json!({"read_ct": 2, "attempt": 1}));
}

#[tokio::test]
async fn a_thousand_deferrals_leave_the_first_attempt() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.send().await;
    // One transaction a round, as in life.
    s.run(
        "CREATE PROCEDURE defer_often() LANGUAGE plpgsql AS $$
        BEGIN
            FOR n IN 1..1000 LOOP
                ASSERT (SELECT r.attempt FROM vtq.read('q') AS r) = 1;
                ASSERT (SELECT d.outcome FROM vtq.defer('q', 1, n, '0') AS d) = 'deferred';
                COMMIT;
            END LOOP;
        END $$",
    )
    .await;

    s.run("CALL defer_often()").await;

    let row = s.row("SELECT read_ct, attempt FROM vtq.read('q')").await;
    assert_eq!(row, json!({"read_ct": 1001, "attempt": 1}));
    assert_eq!((s.count("vtq.q_attempts").await, s.count("vtq.q_dlq").await), (1000, 0));
}

#[tokio::test]
async fn a_deferral_does_not_move_the_backoff() {
    let s = Session::with_queue(r#"{"backoff": {"jitter": 0}}"#).await;
    s.send().await;
    for read_ct in 1..=3 {
        s.run(&format!("SELECT vtq.read('q'); SELECT vtq.defer('q', 1, {read_ct}, '0')")).await;
    }
    s.read(1).await;

    let wait: f64 = s
        .value("SELECT extract(epoch FROM f.vt - clock_timestamp())::float8 FROM vtq.fail('q', 1, 4) AS f")
        .await;

    assert!(wait > 4.0 && wait <= 5.0, "{wait} s after the first failure");
}

#[tokio::test]
async fn a_deferral_past_the_deadline_is_death_by_expiry() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1', expires_at => now() + interval '1 min'); SELECT vtq.read('q')").await;

    let call = "SELECT outcome, vt FROM vtq.defer('q', 1, 1, '2 min', 'later')";
    let first = s.row(call).await;
    let second = s.row(call).await;

    assert_eq!(first, json!({"outcome": "dead", "vt": null}));
    assert_eq!(second, first, "the same call again");
    assert_eq!(s.values::<String>("SELECT reason FROM vtq.dlq_list('q')").await, ["expired"]);
    let attempt = s.row("SELECT outcome, reason FROM vtq.attempts('q', 1)").await;
    assert_eq!(attempt, json!({"outcome": "expired", "reason": "later"}));
}

#[tokio::test]
async fn repeating_a_deferral_gives_the_same_answer_and_changes_nothing() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;
    let call = "SELECT outcome, vt FROM vtq.defer('q', 1, 1, '1 min')";
    let first = s.row(call).await;
    let before = s.row("SELECT * FROM vtq.q").await;

    assert_eq!(s.row(call).await, first);

    assert_eq!(s.row("SELECT * FROM vtq.q").await, before);
}

#[tokio::test]
async fn a_released_message_is_visible_at_once_and_keeps_its_place() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3}'); SELECT vtq.read('q', qty => 2)").await;

    assert_eq!(s.values::<i64>("SELECT vtq.release('q', '{2,1}', '{1,1}', 'shutdown')").await, [1, 2]);

    let attempts =
        s.rows("SELECT msg_id, attempt, outcome, reason FROM vtq.q_attempts ORDER BY msg_id").await;
    let released = |id: i32| json!({"msg_id": id, "attempt": 1, "outcome": "released", "reason": "shutdown"});
    assert_eq!(attempts, json!([released(1), released(2)]));
    let read = s.rows("SELECT msg_id, read_ct, attempt FROM vtq.read('q', qty => 9)").await;
    let again = |id: i32, read_ct: i32| json!({"msg_id": id, "read_ct": read_ct, "attempt": 1});
    assert_eq!(read, json!([again(1, 2), again(2, 2), again(3, 1)]));
}

#[tokio::test]
async fn what_was_given_back_is_not_taken_for_abandoned() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3}'); SELECT vtq.read('q', qty => 3)").await;
    s.run("SELECT vtq.release('q', '{1}', '{1}'), vtq.defer('q', 2, 1, '0'), vtq.fail('q', 3, 1, NULL, '0')")
        .await;

    s.run("SELECT vtq.sweep('q'); SELECT vtq.read('q', qty => 3)").await;

    let outcomes = s.values::<String>("SELECT outcome FROM vtq.q_attempts ORDER BY msg_id").await;
    assert_eq!(outcomes, ["released", "deferred", "failed"]);
}

#[tokio::test]
async fn a_long_reason_is_cut_with_a_mark() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2}'); SELECT vtq.read('q', qty => 2)").await;

    s.run("SELECT vtq.release('q', '{1}', '{1}', repeat('é', 2000))").await;
    s.run("SELECT vtq.defer('q', 2, 1, '0', repeat('é', 2000))").await;

    let lengths =
        s.values::<i32>("SELECT length(reason) FROM vtq.q_attempts WHERE right(reason, 1) = '…'").await;
    assert_eq!(lengths, [1000, 1000]);
}

#[tokio::test]
async fn a_cancelled_message_is_gone_and_its_holder_learns_by_the_heartbeat() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2}')").await;
    s.run("SELECT vtq.send('q', '3', delay => '1 h'); SELECT vtq.read('q')").await;

    for id in 1..=3 {
        assert!(s.value::<bool>(&format!("SELECT vtq.cancel('q', {id})")).await, "{id}");
        assert!(!s.value::<bool>(&format!("SELECT vtq.cancel('q', {id})")).await, "{id} again");
    }

    assert_eq!(s.count("vtq.q").await, 0);
    assert_eq!(s.values::<i64>("SELECT vtq.extend('q', '{1}', '{1}')").await, Vec::<i64>::new());
    // Only the one that ran has a history.
    let attempts = s.rows("SELECT msg_id, outcome FROM vtq.q_attempts").await;
    assert_eq!(attempts, json!([{"msg_id": 1, "outcome": "cancelled"}]));
}

#[tokio::test]
async fn run_now_hurries_what_waits_and_nothing_else() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2}'); SELECT vtq.read('q', qty => 2); SELECT vtq.fail('q', 1, 1)")
        .await;
    s.run("SELECT vtq.send('q', '3', delay => '1 h'); SELECT vtq.send('q', '4')").await;

    for (id, hurried) in [(1, true), (2, false), (3, true), (4, false), (5, false)] {
        assert_eq!(s.value::<bool>(&format!("SELECT vtq.run_now('q', {id})")).await, hurried, "{id}");
    }

    let read = s.rows("SELECT msg_id, attempt FROM vtq.read('q', qty => 9) ORDER BY msg_id").await;
    let one = |id: i32, attempt: i32| json!({"msg_id": id, "attempt": attempt});
    assert_eq!(read, json!([one(1, 2), one(3, 1), one(4, 1)]));
    assert_eq!(s.values::<String>("SELECT outcome FROM vtq.q_attempts").await, ["failed"]);
}

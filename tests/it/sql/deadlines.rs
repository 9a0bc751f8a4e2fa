//! Deadlines: `expires_at`, not to be started after; `retry_until`, not to be run again after.
//!
//! What peers get wrong: a backoff that ends after the deadline lets the message wait for nothing and then replaces its
//! error by one about time or about attempts. Here the choice is made at the failure, and the error stays.

use serde_json::json;

use super::session::Session;

/// Sends to queue `q` with this deadline, counted in seconds from now, and reads.
async fn send_and_read(s: &Session, deadline: &str, seconds: u32, rest: &str) -> i64 {
    let id = s
        .value(&format!(
            "SELECT vtq.send('q', '{{}}', {deadline} => clock_timestamp() + '{seconds} s'::interval{rest})"
        ))
        .await;
    assert_eq!(s.read(1).await, [id]);
    id
}

/// The dead letter of a message, as far as it tells why.
async fn why(s: &Session, id: i64) -> serde_json::Value {
    s.row(&format!(
        "SELECT b ->> 'reason' AS reason, b ->> 'error_message' AS error, b ->> 'source' AS source
        FROM vtq.q_dlq, LATERAL (SELECT headers -> 'vtq_dead_letter' AS b) AS h WHERE msg_id = {id}"
    ))
    .await
}

#[tokio::test]
async fn a_wait_past_either_deadline_is_death_at_the_failure_with_the_true_error() {
    let s = Session::with_queue(r#"{"backoff": {"kind": "list", "delays": [3, 100]}}"#).await;

    for deadline in ["expires_at", "retry_until"] {
        let id = send_and_read(&s, deadline, 60, "").await;
        let first = format!("SELECT outcome FROM vtq.fail('q', {id}, 1, '\"the first\"')");
        assert_eq!(s.value::<String>(&first).await, "retry", "{deadline}: 3 s fit");
        s.make_visible(id).await;
        s.read(1).await;

        let last = s.row(&format!("SELECT outcome, vt FROM vtq.fail('q', {id}, 2, '\"declined\"')")).await;

        assert_eq!(last, json!({"outcome": "dead", "vt": null}), "{deadline}: 100 s do not");
        assert_eq!(why(&s, id).await, json!({"reason": "expired", "error": "declined", "source": "worker"}));
    }
}

#[tokio::test]
async fn a_clamped_wait_leaves_one_last_try_before_the_deadline_and_no_other() {
    let s = Session::with_queue(
        r#"{"max_attempts": 99, "backoff": {"base": 300, "max": 3600, "on_deadline": "clamp"}}"#,
    )
    .await;

    for deadline in ["expires_at", "retry_until"] {
        let id = send_and_read(&s, deadline, 100, "").await;

        let fits =
            "SELECT outcome = 'retry' AND f.vt BETWEEN m.due - '10 s'::interval AND m.due - '5 s'::interval";
        let last_try: bool = s
            .value(&format!(
                "{fits} FROM (SELECT least(expires_at, retry_until) AS due FROM vtq.q WHERE msg_id = {id}) AS m,
                    vtq.fail('q', {id}, 1, '\"busy\"') AS f"
            ))
            .await;
        assert!(last_try, "{deadline}: a twentieth to a tenth of the 100 s before it");
        assert_eq!(s.read(1).await, Vec::<i64>::new(), "not at once");
        // The last try runs, within the margin.
        let passed = "ready_at = clock_timestamp(), vt = clock_timestamp(), enqueued_at = enqueued_at - '90 s'::interval";
        let sooner = format!("{deadline} = {deadline} - '91 s'::interval");
        s.run(&format!("UPDATE vtq.q SET {passed}, {sooner} WHERE msg_id = {id}")).await;
        assert_eq!(s.read(1).await, [id]);

        let outcome: String =
            s.value(&format!("SELECT outcome FROM vtq.fail('q', {id}, 2, '\"still busy\"')")).await;

        assert_eq!(outcome, "dead", "{deadline}");
        let expected = json!({"reason": "expired", "error": "still busy", "source": "worker"});
        assert_eq!(why(&s, id).await, expected);
    }
}

#[tokio::test]
async fn last_tries_of_one_deadline_do_not_come_together() {
    let s = Session::with_queue(r#"{"backoff": {"base": 300, "on_deadline": "clamp"}}"#).await;
    s.run("SELECT vtq.send_batch('q', array_fill('{}'::jsonb, ARRAY[300]), retry_until => clock_timestamp() + '250 s'::interval)")
        .await;

    let fullest: i64 = s
        .value(
            "SELECT max(ct) FROM (
                SELECT count(*) AS ct
                FROM vtq.read('q', '1 min', 300) AS r, vtq.fail('q', r.msg_id, r.read_ct) AS f
                GROUP BY floor(extract(epoch FROM f.vt) * 10)
            ) AS bin",
        )
        .await;

    assert!(fullest < 15, "{fullest} of 300 in one tenth of a second");
}

#[tokio::test]
async fn a_wait_that_was_asked_for_is_not_clamped() {
    let s = Session::with_queue(r#"{"backoff": {"on_deadline": "clamp"}}"#).await;
    let id = send_and_read(&s, "retry_until", 50, "").await;

    let outcome: String =
        s.value(&format!("SELECT outcome FROM vtq.fail('q', {id}, 1, '\"429\"', '60 s')")).await;

    assert_eq!(outcome, "dead");
    assert_eq!(why(&s, id).await["error"], "429");
}

#[tokio::test]
async fn a_message_can_bring_its_own_choice() {
    let s = Session::with_queue(r#"{"backoff": {"base": 100}}"#).await;
    let own = r#", policy => '{"backoff": {"on_deadline": "clamp"}}'"#;
    let id = send_and_read(&s, "expires_at", 60, own).await;

    assert_eq!(s.value::<String>(&format!("SELECT outcome FROM vtq.fail('q', {id}, 1)")).await, "retry");
}

#[tokio::test]
async fn the_last_attempt_is_exhausted_whatever_the_deadline() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    let id = send_and_read(&s, "expires_at", 1, "").await;

    s.run(&format!("SELECT vtq.fail('q', {id}, 1, '\"no\"')")).await;

    assert_eq!(why(&s, id).await["reason"], "attempts_exhausted");
}

#[tokio::test]
async fn the_first_run_is_not_a_retry() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '{}', retry_until => clock_timestamp() + '1 hour'::interval)").await;
    let past = "UPDATE vtq.q SET retry_until = clock_timestamp() - '1 hour'::interval";
    s.run(past).await;

    assert_eq!(s.read(1).await, [1], "it came late, and has never run");
    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, [1], "one that runs is finished");
}

#[tokio::test]
async fn a_delivery_that_never_started_is_not_a_run_either() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '{}', retry_until => clock_timestamp() + '1 hour'::interval)").await;
    s.run("SELECT vtq.read('q', '1 min', holder => 7)").await;
    s.run("UPDATE vtq.q SET retry_until = clock_timestamp() - '1 hour'::interval").await;

    s.make_visible(1).await;

    assert_eq!(s.read(1).await, [1]);
}

#[tokio::test]
async fn a_retry_that_comes_too_late_is_swept_and_not_run() {
    let s = Session::with_queue("{}").await;
    let id = send_and_read(&s, "retry_until", 3600, "").await;
    s.run(&format!("SELECT vtq.fail('q', {id}, 1, '\"refused\"')")).await;
    s.make_visible(id).await;
    s.run("UPDATE vtq.q SET retry_until = clock_timestamp()").await;

    let told = s
        .row(&format!("SELECT e ->> 'state' AS state, e ->> 'why' AS why FROM vtq.explain('q', {id}) AS e"))
        .await;
    assert_eq!(told["state"], "expired");
    assert!(told["why"].as_str().unwrap().contains("not to be started after"), "{told}");
    assert_eq!(s.value::<i64>("SELECT expired FROM vtq.metrics('q')").await, 1);
    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.peek('q', 9)").await, Vec::<i64>::new());
    assert_eq!(s.read(9).await, Vec::<i64>::new());

    let expected = json!({"reason": "expired", "error": "refused", "source": "sweep"});
    assert_eq!(why(&s, id).await, expected, "the read swept it; the error is that of its last run");
}

#[tokio::test]
async fn a_worker_that_dies_past_the_deadline_leaves_no_further_run() {
    let s = Session::with_queue("{}").await;
    let id = send_and_read(&s, "retry_until", 3600, "").await;
    s.run("UPDATE vtq.q SET retry_until = clock_timestamp()").await;
    s.make_visible(id).await;

    assert_eq!(s.row("SELECT dead, abandoned FROM vtq.sweep('q')").await, json!({"dead": 1, "abandoned": 1}));

    assert_eq!(why(&s, id).await, json!({"reason": "expired", "error": null, "source": "sweep"}));
}

#[tokio::test]
async fn a_deferral_past_the_deadline_is_death_only_for_what_has_run() {
    let s = Session::with_queue("{}").await;
    let fresh = send_and_read(&s, "retry_until", 50, "").await;
    let defer =
        |id: i64, read_ct: i32| format!("SELECT outcome FROM vtq.defer('q', {id}, {read_ct}, '1 hour')");
    assert_eq!(s.value::<String>(&defer(fresh, 1)).await, "deferred");

    let failed = send_and_read(&s, "retry_until", 50, "").await;
    s.run(&format!("SELECT vtq.fail('q', {failed}, 1, '\"broken\"')")).await;
    s.make_visible(failed).await;
    assert_eq!(s.read(1).await, [failed]);

    assert_eq!(s.value::<String>(&defer(failed, 2)).await, "dead");
    assert_eq!(why(&s, failed).await, json!({"reason": "expired", "error": "broken", "source": "worker"}));
}

#[tokio::test]
async fn redriving_keeps_a_deadline_to_come_and_drops_one_that_is_past() {
    let s = Session::with_queue("{}").await;
    for id in 1..=2 {
        send_and_read(&s, "retry_until", 3600, "").await;
        s.run(&format!("SELECT vtq.dead_letter('q', {id}, 1)")).await;
    }
    s.run("UPDATE vtq.q_dlq SET retry_until = clock_timestamp() WHERE msg_id = 1").await;

    s.run("SELECT vtq.redrive_all('q')").await;

    let kept = s.rows("SELECT msg_id, retry_until IS NOT NULL AS kept FROM vtq.q ORDER BY msg_id").await;
    assert_eq!(kept, json!([{"msg_id": 1, "kept": false}, {"msg_id": 2, "kept": true}]));
}

#[tokio::test]
async fn impossible_combinations_are_refused_at_send_with_both_names() {
    let s = Session::with_queue("{}").await;
    let cases = [
        ("retry_until => '2001-01-01'", "retry_until 2001-01-01", "when the message is due"),
        ("expires_at => '2001-01-01'", "expires_at 2001-01-01", "when the message is due"),
        ("retry_until => '2200-01-02', visible_at => '2200-01-03'", "retry_until 2200-01-02", "2200-01-03"),
        ("retry_until => '2200-01-01', max_attempts => 1", "retry_until 2200-01-01", "max_attempts 1"),
        (
            "retry_until => '2200-01-02', expires_at => '2200-01-01'",
            "retry_until 2200-01-02",
            "expires_at 2200-01-01",
        ),
        (
            "retry_until => '2200-01-01 00:00:04+00', visible_at => '2200-01-01 00:00:00+00'",
            "leaves no time for a retry: the message is due at 2200-01-01",
            "its backoff waits at least 00:00:04.25",
        ),
    ];

    for (arguments, deadline, other) in cases {
        let one = s.refusal(&format!("SELECT vtq.send('q', '{{}}', {arguments})")).await;
        let many = s.refusal(&format!("SELECT vtq.send_batch('q', '{{1,2}}', {arguments})")).await;

        assert!(
            one.starts_with("22023 ") && one.contains(deadline) && one.contains(other),
            "{arguments}: {one}"
        );
        assert!(many.contains(deadline) && many.contains(other), "{arguments}: {many}");
    }
    let clamped = r#"policy => '{"backoff": {"on_deadline": "clamp"}}'"#;
    s.run(&format!(
        "SELECT vtq.send('q', '{{}}', {clamped}, retry_until => clock_timestamp() + '4 s'::interval)"
    ))
    .await;
    assert_eq!(s.count("vtq.q").await, 1);
}

#[tokio::test]
async fn an_unknown_choice_is_refused_with_the_rule() {
    let s = Session::new().await;

    let refusal = s.refusal(r#"SELECT vtq.create_queue('q', '{"backoff": {"on_deadline": "drop"}}')"#).await;

    assert!(
        refusal.starts_with(r#"22023 backoff key "on_deadline" is "drop", but must be dead or clamp"#),
        "{refusal}"
    );
}

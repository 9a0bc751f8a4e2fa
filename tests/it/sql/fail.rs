//! Failing: retry after the backoff, or death, and the record of it.

use std::time::{Duration, Instant};

use serde_json::json;
use vtq_tests::wait_until;

use super::session::Session;

/// Seconds from now to the answer's `vt`, of a call of `vtq.fail` or `vtq.defer`.
async fn wait_of(s: &Session, call: &str) -> f64 {
    let sql = format!("SELECT extract(epoch FROM f.vt - clock_timestamp())::float8 FROM {call} AS f");
    s.value::<Option<f64>>(&sql).await.expect("a retry")
}

#[tokio::test]
async fn a_handler_that_always_fails_runs_five_times_and_dies_with_its_story() {
    let s = Session::with_queue(r#"{"backoff": {"base": 0.1}}"#).await;
    let id: i64 = s.value(r#"SELECT vtq.send('q', '{"n": 1}', '{"a": 1}')"#).await;
    let started = Instant::now();
    let mut runs = Vec::new();

    let mut outcome = String::new();
    while outcome != "dead" {
        let mut read_ct = 0;
        wait_until(Duration::from_secs(5), "the next run", async || {
            let read = s.values::<i32>("SELECT read_ct FROM vtq.read('q')").await;
            read_ct = read.first().copied().unwrap_or(0);
            read_ct > 0
        })
        .await;
        runs.push(started.elapsed().as_secs_f64());
        let error = r#"'{"class": "Boom", "message": "always", "worker": "w1"}'"#;
        outcome = s.value(&format!("SELECT outcome FROM vtq.fail('q', {id}, {read_ct}, {error})")).await;
    }

    assert_eq!(runs.len(), 5, "{runs:?}");
    for (gap, nominal) in runs.windows(2).map(|pair| pair[1] - pair[0]).zip([0.1, 0.2, 0.4, 0.8]) {
        assert!(gap > nominal * 0.85 - 0.001 && gap < nominal * 1.15 + 0.3, "{runs:?}");
    }
    let attempts = s.rows("SELECT attempt, outcome FROM vtq.attempts('q', 1)").await;
    let failed = |attempt: i32| json!({"attempt": attempt, "outcome": "failed"});
    assert_eq!(attempts, json!((1..=5).map(failed).collect::<Vec<_>>()));
    let block = s.row("SELECT headers -> 'vtq_dead_letter' AS b FROM vtq.q_dlq").await["b"].take();
    assert_eq!(block["reason"], "attempts_exhausted");
    assert_eq!((&block["attempts"], &block["max_attempts"]), (&json!(5), &json!(5)));
    assert!(s.value::<bool>("SELECT vtq.redrive('q', 1)").await);
    let again = s.row("SELECT msg_id, attempt, headers FROM vtq.read('q')").await;
    assert_eq!(again, json!({"msg_id": 1, "attempt": 1, "headers": {"a": 1, "vtq_redrives": 1}}));
}

#[tokio::test]
async fn by_default_the_waits_are_5_10_20_40_and_the_fifth_failure_is_the_last() {
    let s = Session::with_queue("{}").await;
    s.send().await;

    for (read_ct, nominal) in (1..).zip([5.0, 10.0, 20.0, 40.0]) {
        assert_eq!(s.read(1).await, [1]);
        let wait = wait_of(&s, &format!("vtq.fail('q', 1, {read_ct})")).await;
        assert!(wait > nominal * 0.84 && wait <= nominal * 1.15, "after failure {read_ct}: {wait} s");
        assert_eq!(s.read(1).await, Vec::<i64>::new());
        s.make_visible(1).await;
    }
    s.read(1).await;

    let last = s.row("SELECT outcome, vt FROM vtq.fail('q', 1, 5)").await;

    assert_eq!(last, json!({"outcome": "dead", "vt": null}));
    assert_eq!((s.count("vtq.q").await, s.count("vtq.q_dlq").await), (0, 1));
}

#[tokio::test]
async fn a_failure_is_recorded_with_its_delivery() {
    let s = Session::with_queue("{}").await;
    s.send().await;
    s.read(1).await;
    let error =
        r#"{"class": "Declined", "code": "E-7", "message": "no", "detail": "at line 1", "worker": "w"}"#;

    s.run(&format!("SELECT vtq.fail('q', 1, 1, '{error}')")).await;

    let row = s
        .row(
            "SELECT a.attempt, a.outcome, a.error_class, a.error_code, a.error_message, a.error_detail, a.worker,
                a.started_at = m.last_read_at AS started, a.vt = m.vt AND m.vt = m.ready_at AS due,
                a.ended_at BETWEEN a.started_at AND clock_timestamp() AS ended
            FROM vtq.q_attempts AS a JOIN vtq.q AS m USING (msg_id)",
        )
        .await;
    assert_eq!(
        row,
        json!({"attempt": 1, "outcome": "failed", "error_class": "Declined", "error_code": "E-7",
            "error_message": "no", "error_detail": "at line 1", "worker": "w", "started": true, "due": true,
            "ended": true})
    );
}

#[tokio::test]
async fn repeating_a_failure_gives_the_same_answer_and_changes_nothing() {
    let s = Session::with_queue(r#"{"max_attempts": 2}"#).await;
    s.send().await;
    let everything = "SELECT (SELECT jsonb_agg(to_jsonb(a)) FROM vtq.q_attempts AS a) AS attempts,
        (SELECT jsonb_agg(to_jsonb(m)) FROM vtq.q AS m) AS live,
        (SELECT jsonb_agg(to_jsonb(d)) FROM vtq.q_dlq AS d) AS dead";

    for (read_ct, outcome) in [(1, "retry"), (2, "dead")] {
        assert_eq!(s.read(1).await, [1]);
        let call = format!("SELECT outcome, vt FROM vtq.fail('q', 1, {read_ct}, '\"why\"')");
        let first = s.row(&call).await;
        let before = s.row(everything).await;

        let second = s.row(&call.replace("why", "again")).await;

        assert_eq!((&first["outcome"], &first), (&json!(outcome), &second));
        assert_eq!(s.row(everything).await, before);
        if outcome == "retry" {
            s.make_visible(1).await;
        }
    }
}

#[tokio::test]
async fn a_lost_reply_is_answered_after_the_next_delivery_too() {
    let s = Session::with_queue("{}").await;
    s.send().await;
    s.read(1).await;
    let call = "SELECT outcome, vt FROM vtq.fail('q', 1, 1)";
    let first = s.row(call).await;
    s.make_visible(1).await;
    s.read(1).await;
    let held = s.row("SELECT * FROM vtq.q").await;

    assert_eq!(s.row(call).await, first);

    assert_eq!(s.row("SELECT * FROM vtq.q").await, held);
}

#[tokio::test]
async fn an_explicit_wait_is_never_shortened_nor_cut() {
    let s = Session::with_queue(r#"{"max_attempts": 99, "backoff": {"max": 10, "jitter": "full"}}"#).await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 50)").await;
    s.read(50).await;
    let sql = "
        SELECT count(*) FROM (SELECT id, clock_timestamp() AS before FROM generate_series(1, 50) AS id OFFSET 0) AS t
        CROSS JOIN LATERAL vtq.fail('q', t.id, 1, NULL, '60 s') AS f
        WHERE f.vt >= t.before + interval '60 s' AND f.vt < t.before + interval '70 s'";

    assert_eq!(s.value::<i64>(sql).await, 50);
}

#[tokio::test]
async fn an_explicit_wait_grants_no_further_run() {
    let s = Session::with_queue(r#"{"max_attempts": 2}"#).await;
    s.send().await;

    s.run("SELECT vtq.read('q'); SELECT vtq.fail('q', 1, 1, NULL, '0'); SELECT vtq.read('q')").await;

    assert_eq!(s.value::<String>("SELECT outcome FROM vtq.fail('q', 1, 2, NULL, '0')").await, "dead");
}

#[tokio::test]
async fn a_deadline_beats_the_backoff_and_keeps_the_true_error() {
    let s = Session::with_queue("{}").await;
    s.run(
        "SELECT vtq.send('q', '1', expires_at => clock_timestamp() + interval '3 s'); SELECT vtq.read('q')",
    )
    .await;

    let answer = s.row("SELECT outcome, vt FROM vtq.fail('q', 1, 1, '\"the true one\"')").await;

    assert_eq!(answer, json!({"outcome": "dead", "vt": null}));
    let row = s.row("SELECT reason, error_message, attempts FROM vtq.dlq_list('q')").await;
    assert_eq!(row, json!({"reason": "expired", "error_message": "the true one", "attempts": 1}));
}

#[tokio::test]
async fn a_retry_before_the_deadline_is_granted() {
    let s = Session::with_queue("{}").await;
    s.run(
        "SELECT vtq.send('q', '1', expires_at => clock_timestamp() + interval '1 min'); SELECT vtq.read('q')",
    )
    .await;

    assert_eq!(s.value::<String>("SELECT outcome FROM vtq.fail('q', 1, 1)").await, "retry");
}

#[tokio::test]
async fn a_messages_own_policy_lies_over_its_queues() {
    let s = Session::with_queue(r#"{"backoff": {"kind": "fixed", "base": 100, "jitter": 0}}"#).await;
    let policies = [
        ("NULL", 100.0),
        (r#"'{"backoff": {"base": 7}}'"#, 7.0),
        (r#"'{"backoff": {"kind": "list", "delays": [13, 17]}}'"#, 13.0),
        (r#"'{"backoff": {"kind": "exponential", "base": 30}}'"#, 30.0),
        (r#"'{"timeout": 5}'"#, 100.0),
        ("'{}'", 100.0),
    ];

    for (id, (policy, nominal)) in (1..).zip(policies) {
        s.run(&format!("SELECT vtq.send('q', '1', policy => {policy}); SELECT vtq.read('q')")).await;
        let wait = wait_of(&s, &format!("vtq.fail('q', {id}, 1)")).await;
        assert!(wait > nominal - 1.0 && wait <= nominal, "{policy}: {wait} s");
    }
}

#[tokio::test]
async fn a_messages_own_limit_goes_before_its_queues() {
    let s = Session::with_queue(r#"{"max_attempts": 2}"#).await;

    for (id, limit, outcome) in [(1, 1, "dead"), (2, 3, "retry")] {
        s.run(&format!("SELECT vtq.send('q', '1', max_attempts => {limit}); SELECT vtq.read('q')")).await;
        assert_eq!(s.value::<String>(&format!("SELECT outcome FROM vtq.fail('q', {id}, 1)")).await, outcome);
    }
}

#[tokio::test]
async fn a_policy_that_no_longer_fits_its_queue_does_not_stop_the_failure() {
    let s = Session::with_queue(r#"{"backoff": {"kind": "list", "delays": [9], "jitter": 0}}"#).await;
    s.run(r#"SELECT vtq.send('q', '1', policy => '{"backoff": {"kind": "list"}}')"#).await;
    s.run(r#"SELECT vtq.send('q', '1', policy => '{"backoff": {"kind": "linear", "base": 200}}')"#).await;
    s.run(
        r#"SELECT vtq.set_queue('q', '{"backoff": {"kind": "fixed", "base": 50, "max": 100, "jitter": 0}}')"#,
    )
    .await;
    s.read(2).await;

    for id in [1, 2] {
        let wait = wait_of(&s, &format!("vtq.fail('q', {id}, 1)")).await;
        assert!(wait > 49.0 && wait <= 50.0, "message {id}: {wait} s");
    }
}

#[tokio::test]
async fn a_broken_policy_does_not_stop_the_failure() {
    let s = Session::with_queue(r#"{"backoff": {"kind": "fixed", "base": 50, "jitter": 0}}"#).await;
    let policies = [
        r#"{"backoff": 5}"#,
        r#"{"backoff": {"base": "x"}}"#,
        r#"{"backoff": {"kind": "list"}}"#,
        "7",
        r#""backoff""#,
        r#"{"backoff": [1]}"#,
        r#"{"backoff": null}"#,
    ];

    for (id, policy) in (1..).zip(policies) {
        s.run(&format!("INSERT INTO vtq.q (message, policy) VALUES ('1', '{policy}'); SELECT vtq.read('q')"))
            .await;
        let wait = wait_of(&s, &format!("vtq.fail('q', {id}, 1)")).await;
        assert!(wait > 49.0 && wait <= 50.0, "{policy}: {wait} s");
    }
}

#[tokio::test]
async fn any_error_can_be_recorded() {
    let s = Session::with_queue(r#"{"max_attempts": 32767}"#).await;
    s.send().await;
    let errors = [
        ("NULL", json!([null, null, null])),
        ("'null'", json!([null, null, null])),
        ("'\"text\"'", json!([null, null, "text"])),
        ("'5'", json!([null, null, "5"])),
        ("'[1, 2]'", json!([null, null, "[1, 2]"])),
        ("'{}'", json!([null, null, null])),
        (r#"'{"message": {"a": 1}, "class": 7, "other": 1}'"#, json!(["7", null, "{\"a\": 1}"])),
        (r#"'{"code": "a b\"; -- é.C_9-"}'"#, json!([null, "ab--.C_9-", null])),
        (r#"'{"code": "é"}'"#, json!([null, null, null])),
    ];

    for (read_ct, (error, expected)) in (1..).zip(errors) {
        s.run(&format!("SELECT vtq.read('q'); SELECT vtq.fail('q', 1, {read_ct}, {error}, '0')")).await;
        let sql = format!(
            "SELECT jsonb_build_array(error_class, error_code, error_message) AS e FROM vtq.q_attempts
            WHERE read_ct = {read_ct}"
        );
        assert_eq!(s.row(&sql).await["e"], expected, "{error}");
    }
}

#[tokio::test]
async fn long_texts_of_an_error_are_cut_with_a_mark() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;

    s.run(
        "SELECT vtq.fail('q', 1, 1, jsonb_build_object('class', repeat('é', 300), 'code', repeat('c', 300),
            'message', repeat('é', 1000000), 'detail', repeat('é', 1000000), 'worker', repeat('é', 300)))",
    )
    .await;

    let lengths = s
        .row("SELECT length(error_class) AS class, length(error_code) AS code, length(error_message) AS message,
            length(error_detail) AS detail, length(worker) AS worker, right(error_message, 1) AS mark FROM vtq.q_attempts")
        .await;
    assert_eq!(
        lengths,
        json!({"class": 200, "code": 127, "message": 16384, "detail": 16384, "worker": 200, "mark": "…"})
    );
}

#[tokio::test]
async fn a_panic_and_a_timeout_are_told_apart() {
    let s = Session::with_queue("{}").await;
    s.send().await;

    for (read_ct, outcome) in [(1, "panicked"), (2, "timed_out"), (3, "failed")] {
        s.run(&format!(
            r#"SELECT vtq.read('q'); SELECT vtq.fail('q', 1, {read_ct}, '{{"outcome": "{outcome}"}}', '0')"#
        ))
        .await;
    }

    let outcomes = s.values::<String>("SELECT outcome FROM vtq.attempts('q', 1)").await;
    assert_eq!(outcomes, ["panicked", "timed_out", "failed"]);
}

#[tokio::test]
async fn a_failure_that_is_rolled_back_leaves_the_lease() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;

    s.run("BEGIN; SELECT vtq.fail('q', 1, 1); ROLLBACK").await;

    assert_eq!((s.count("vtq.q_dlq").await, s.count("vtq.q_attempts").await), (0, 0));
    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, [1]);
}

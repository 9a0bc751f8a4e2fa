//! Redriving and purging: the way out of the dead letters.

use serde_json::json;

use super::session::Session;

/// A session whose queue `q` has `count` dead letters, of one attempt each.
async fn with_letters(count: i32) -> Session {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.run(&format!(
        "SELECT vtq.send_batch('q', array_agg(to_jsonb(n))) FROM generate_series(1, {count}) AS n"
    ))
    .await;
    s.run(
        r#"SELECT vtq.fail('q', r.msg_id, 1,
            jsonb_build_object('class', 'C' || r.msg_id % 2, 'code', 'E' || r.msg_id % 3))
        FROM vtq.read('q', qty => 10000) AS r"#,
    )
    .await;
    s
}

#[tokio::test]
async fn a_redriven_message_is_the_same_with_a_new_budget() {
    let s = Session::with_queue(r#"{"max_attempts": 2}"#).await;
    s.run(r#"SELECT vtq.send('q', '{"n": 1.10}', '{"a": 1}')"#).await;
    let sent = s.row("SELECT msg_id, enqueued_at, message FROM vtq.q").await;
    for read_ct in [1, 2] {
        s.run(&format!("SELECT vtq.read('q'); SELECT vtq.fail('q', 1, {read_ct}, NULL, '0')")).await;
    }

    assert!(s.value::<bool>("SELECT vtq.redrive('q', 1)").await);

    assert_eq!(s.row("SELECT msg_id, enqueued_at, message FROM vtq.q").await, sent);
    let read = s.row("SELECT read_ct, attempt, headers FROM vtq.read('q')").await;
    assert_eq!(read, json!({"read_ct": 3, "attempt": 1, "headers": {"a": 1, "vtq_redrives": 1}}));
    assert_eq!(s.value::<String>("SELECT outcome FROM vtq.fail('q', 1, 3, NULL, '0')").await, "retry");
    s.read(1).await;
    assert_eq!(s.value::<String>("SELECT outcome FROM vtq.fail('q', 1, 4, NULL, '0')").await, "dead");
    assert_eq!(s.count("vtq.q_dlq").await, 1);
}

#[tokio::test]
async fn a_trip_that_leaves_no_error_does_not_show_the_error_of_the_trip_before() {
    let s = with_letters(1).await;
    let class = "SELECT headers #>> '{vtq_dead_letter,error_class}' AS class FROM vtq.q_dlq";
    assert_eq!(s.row(class).await, json!({"class": "C1"}));
    s.run("SELECT vtq.redrive('q', 1)").await;

    s.run("SELECT vtq.read('q', '1 ms')").await;
    s.run("SELECT pg_sleep(0.01), vtq.sweep('q')").await;

    assert_eq!(s.row(class).await, json!({"class": null}));
    let reason = s.row("SELECT headers #>> '{vtq_dead_letter,reason}' AS reason FROM vtq.q_dlq").await;
    assert_eq!(reason, json!({"reason": "worker_died"}));
}

#[tokio::test]
async fn trips_are_counted_in_the_block_and_in_the_headers() {
    let s = with_letters(1).await;

    for trips in 1..=3 {
        s.run("SELECT vtq.redrive('q', 1)").await;
        let headers = s.row("SELECT headers FROM vtq.peek('q')").await;
        assert_eq!(headers, json!({"headers": {"vtq_redrives": trips}}));
        s.run("SELECT vtq.fail('q', r.msg_id, r.read_ct) FROM vtq.read('q') AS r").await;
        let row = s
            .row(
                "SELECT l.redrives, l.attempts, d.headers -> 'vtq_dead_letter' -> 'redrives' AS in_block,
                    d.headers -> 'vtq_dead_letter' -> 'attempts' AS attempts_in_block
                FROM vtq.dlq_list('q') AS l JOIN vtq.q_dlq AS d USING (msg_id)",
            )
            .await;
        assert_eq!(row, json!({"redrives": trips, "attempts": 1, "in_block": trips, "attempts_in_block": 1}));
    }
    let outcomes = s.values::<String>("SELECT outcome FROM vtq.attempts('q', 1)").await;
    assert_eq!(outcomes, ["failed"; 4], "attempts stay through every trip");
}

#[tokio::test]
async fn the_first_holder_is_stale_after_a_trip() {
    let s = with_letters(1).await;
    s.run("SELECT vtq.redrive('q', 1); SELECT vtq.read('q')").await;

    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, Vec::<i64>::new());
    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{2}')").await, [1]);
}

#[tokio::test]
async fn a_redrive_may_be_delayed() {
    let s = with_letters(1).await;

    s.run("SELECT vtq.redrive('q', 1, '1 h')").await;

    assert_eq!(s.read(1).await, Vec::<i64>::new());
    let state = s.row("SELECT delayed, retrying FROM vtq.metrics('q')").await;
    assert_eq!(state, json!({"delayed": 1, "retrying": 0}));
}

#[tokio::test]
async fn an_unknown_letter_cannot_be_redriven() {
    let s = with_letters(1).await;
    s.run("SELECT vtq.redrive('q', 1)").await;

    for id in ["1", "2", "NULL"] {
        assert!(!s.value::<bool>(&format!("SELECT vtq.redrive('q', {id})")).await, "{id}");
    }
    assert_eq!(s.count("vtq.q").await, 1);
}

#[tokio::test]
async fn a_redrive_that_is_rolled_back_leaves_the_letter() {
    let s = with_letters(1).await;

    s.run("BEGIN; SELECT vtq.redrive('q', 1); ROLLBACK").await;

    assert_eq!((s.count("vtq.q").await, s.count("vtq.q_dlq").await), (0, 1));
}

#[tokio::test]
async fn an_expired_letter_gets_its_run() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1', expires_at => now() + interval '1 h')").await;
    s.run("UPDATE vtq.q SET expires_at = now(); SELECT vtq.sweep('q')").await;
    assert_eq!(s.values::<String>("SELECT reason FROM vtq.dlq_list('q')").await, ["expired"]);

    s.run("SELECT vtq.redrive('q', 1)").await;

    assert_eq!(s.read(1).await, [1]);
}

#[tokio::test]
async fn a_deadline_still_to_come_is_kept_unless_the_delay_passes_it() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2}', expires_at => '2999-01-01')").await;
    s.run("SELECT vtq.dead_letter('q', r.msg_id, 1) FROM vtq.read('q', qty => 2) AS r").await;
    s.run("UPDATE vtq.q_dlq SET expires_at = now() + interval '30 min' WHERE msg_id = 2").await;

    s.run("SELECT vtq.redrive('q', 1); SELECT vtq.redrive('q', 2, '1 h')").await;

    let has_deadline = s.values::<bool>("SELECT expires_at IS NOT NULL FROM vtq.q ORDER BY msg_id").await;
    assert_eq!(has_deadline, [true, false]);
}

#[tokio::test]
async fn a_letter_of_a_level_that_is_gone_comes_back_at_the_last_one() {
    let s = Session::with_queue(r#"{"priorities": [5, 0]}"#).await;
    s.run(
        "SELECT vtq.send('q', '1', priority => 5); SELECT vtq.read('q'); SELECT vtq.dead_letter('q', 1, 1)",
    )
    .await;
    s.run(r#"SELECT vtq.set_queue('q', '{"priorities": [7, 3]}')"#).await;

    s.run("SELECT vtq.redrive('q', 1)").await;

    let read = s.row("SELECT msg_id, priority FROM vtq.read('q')").await;
    assert_eq!(read, json!({"msg_id": 1, "priority": 3}));
}

#[tokio::test]
async fn all_means_all_in_batches_with_the_true_number() {
    let s = with_letters(25).await;

    let mut moved = Vec::new();
    for _ in 0..4 {
        moved.push(s.value::<i64>("SELECT vtq.redrive_all('q', 10)").await);
        if moved.len() == 1 {
            // The oldest ones first.
            let first = s.values::<i64>("SELECT msg_id FROM vtq.q ORDER BY msg_id").await;
            assert_eq!(first, (1..=10).collect::<Vec<i64>>());
        }
    }

    assert_eq!(moved, [10, 10, 5, 0]);
    assert_eq!((s.count("vtq.q").await, s.count("vtq.q_dlq").await), (25, 0));
}

#[tokio::test]
async fn filters_choose_by_reason_class_and_code() {
    let s = with_letters(12).await;
    s.run(
        "UPDATE vtq.q_dlq SET headers = jsonb_set(headers, '{vtq_dead_letter,reason}', '\"worker_died\"')
        WHERE msg_id = 12",
    )
    .await;
    let filters = [
        (r#"{"reason": "nothing"}"#, vec![]),
        (r#"{"reason": "worker_died", "error_class": "C1"}"#, vec![]),
        (r#"{"error_class": "C1", "error_code": "E0"}"#, vec![3, 9]),
        (r#"{"reason": "worker_died"}"#, vec![12]),
        (r#"{"error_class": "C0"}"#, vec![2, 4, 6, 8, 10]),
        ("{}", vec![1, 5, 7, 11]),
    ];

    for (filter, expected) in filters {
        let moved: i64 = s.value(&format!("SELECT vtq.redrive_all('q', filter => '{filter}')")).await;
        assert_eq!(s.read(100).await, expected, "{filter}");
        assert_eq!(moved, expected.len() as i64, "{filter}");
    }
}

#[tokio::test]
async fn filters_choose_by_the_instant_of_death() {
    let s = with_letters(3).await;
    s.run(
        "UPDATE vtq.q_dlq
        SET dead_lettered_at = '2026-01-01 12:00+00'::timestamptz + msg_id * interval '1 day'",
    )
    .await;

    let between = r#"{"dead_after": "2026-01-02T12:00:00Z", "dead_before": "2026-01-04T12:00:00Z"}"#;
    assert_eq!(s.value::<i64>(&format!("SELECT vtq.redrive_all('q', filter => '{between}')")).await, 1);

    assert_eq!(s.read(9).await, [2]);
}

#[tokio::test]
async fn a_loop_from_before_its_start_ends_though_its_messages_die_again() {
    let s = with_letters(5).await;
    let start: String = s.value("SELECT clock_timestamp()::text").await;
    let redrive = format!(r#"SELECT vtq.redrive_all('q', 2, '{{"dead_before": "{start}"}}')"#);

    let mut moved = Vec::new();
    while moved.last() != Some(&0) {
        moved.push(s.value::<i64>(&redrive).await);
        s.run("SELECT vtq.fail('q', r.msg_id, r.read_ct) FROM vtq.read('q', qty => 9) AS r").await;
    }

    assert_eq!(moved, [2, 2, 1, 0]);
    assert_eq!(s.values::<i32>("SELECT redrives FROM vtq.dlq_list('q')").await, [1; 5]);
}

#[tokio::test]
async fn a_filter_that_cannot_be_meant_is_refused() {
    let s = with_letters(1).await;
    let object = r#"give an object such as {"reason": "worker_died"}"#;
    let keys = "there are reason, error_class, error_code, dead_before, dead_after";
    let cases = [
        ("NULL", format!("filter null is not allowed: {object}")),
        ("'[]'", format!("filter [] is not allowed: {object}")),
        ("'null'", format!("filter null is not allowed: {object}")),
        (r#"'{"class": 1}'"#, format!(r#"filter key "class" is not known: {keys}"#)),
        (
            r#"'{"dead_before": "soon"}'"#,
            r#"filter key "dead_before" is "soon", which is not an instant"#.into(),
        ),
        (r#"'{"dead_after": 5}'"#, r#"filter key "dead_after" is 5, which is not an instant"#.into()),
    ];

    for (filter, sentence) in cases {
        let refusal = s.refusal(&format!("SELECT vtq.redrive_all('q', filter => {filter})")).await;
        assert_eq!(refusal, format!("22023 {sentence}"));
    }
    assert_eq!(s.count("vtq.q_dlq").await, 1);
}

#[tokio::test]
async fn one_letter_is_purged_once() {
    let s = with_letters(2).await;

    assert_eq!(s.value::<i64>("SELECT vtq.dlq_purge('q', 1)").await, 1);
    assert_eq!(s.value::<i64>("SELECT vtq.dlq_purge('q', 1)").await, 0);

    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.q_dlq").await, [2]);
}

#[tokio::test]
async fn letters_are_purged_by_age_the_oldest_first_in_batches() {
    let s = with_letters(5).await;
    s.run("UPDATE vtq.q_dlq SET dead_lettered_at = now() - msg_id * interval '1 day'").await;

    assert_eq!(s.value::<i64>("SELECT vtq.dlq_purge('q', older_than => '60 h', qty => 2)").await, 2);
    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.q_dlq ORDER BY 1").await, [1, 2, 3]);
    assert_eq!(s.value::<i64>("SELECT vtq.dlq_purge('q', older_than => '60 h', qty => 2)").await, 1);
    assert_eq!(s.value::<i64>("SELECT vtq.dlq_purge('q', older_than => '60 h', qty => 2)").await, 0);
    assert_eq!(s.value::<i64>("SELECT vtq.dlq_purge('q', older_than => '0')").await, 2);
    assert_eq!(s.count("vtq.q_dlq").await, 0);
}

#[tokio::test]
async fn a_purge_is_told_what_to_purge() {
    let s = with_letters(1).await;

    for which in ["", ", NULL", ", 1, '0'"] {
        assert_eq!(
            s.refusal(&format!("SELECT vtq.dlq_purge('q'{which})")).await,
            "22023 give msg_id or older_than, one of the two; older_than => '0' purges all"
        );
    }
    assert_eq!(s.count("vtq.q_dlq").await, 1);
}

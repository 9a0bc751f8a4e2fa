//! Dead letters: what the header block says, key by key, and what it keeps.

use serde_json::{Value, json};

use super::session::Session;

/// The block of dead letter `id` of queue `q`.
async fn block(s: &Session, id: i64) -> Value {
    s.value(&format!("SELECT headers -> 'vtq_dead_letter' FROM vtq.q_dlq WHERE msg_id = {id}")).await
}

/// Takes the two instants out of a block, which must be ISO 8601 in UTC, and returns the rest.
async fn without_instants(s: &Session, mut block: Value) -> Value {
    for key in ["first_enqueued_at", "dead_lettered_at", "error_recorded_at"] {
        let Some(Value::String(at)) = block.as_object_mut().unwrap().remove(key) else { continue };
        let sql = format!(
            r"SELECT '{at}' ~ '^\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{6}}Z$'
                AND clock_timestamp() - '{at}'::timestamptz BETWEEN '0' AND '1 min'"
        );
        assert!(s.value::<bool>(&sql).await, "{key} is {at}");
    }
    block
}

#[tokio::test]
async fn the_block_of_a_failed_message_is_complete() {
    let s = Session::with_queue(r#"{"max_attempts": 2}"#).await;
    // The instants are in UTC whatever the session's time zone.
    s.run("SET timezone = 'Asia/Kolkata'; SELECT vtq.send('q', '1')").await;
    s.run(r#"SELECT vtq.read('q'); SELECT vtq.fail('q', 1, 1, '"the first"', '0')"#).await;
    let error =
        r#"{"class": "Boom", "code": "E1", "message": "why", "detail": "here\nthere", "worker": "w1"}"#;

    s.run(&format!("SELECT vtq.read('q'); SELECT vtq.fail('q', 1, 2, '{error}')")).await;

    let block = block(&s, 1).await;
    for key in ["first_enqueued_at", "dead_lettered_at", "error_recorded_at"] {
        assert!(block[key].is_string(), "{key} of {block}");
    }
    assert_eq!(
        without_instants(&s, block).await,
        json!({"version": 1, "reason": "attempts_exhausted", "source": "worker", "source_queue": "q", "attempts": 2,
            "max_attempts": 2, "read_ct": 2, "error_class": "Boom", "error_code": "E1", "error_message": "why",
            "backtrace": "here\nthere", "error_attempt": 2, "worker": "w1"})
    );
}

#[tokio::test]
async fn the_instants_of_the_block_are_those_of_the_rows() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q'); SELECT vtq.fail('q', 1, 1, '\"x\"')").await;

    let equal = s
        .row(
            "SELECT (b ->> 'first_enqueued_at')::timestamptz = d.enqueued_at AS first,
                (b ->> 'dead_lettered_at')::timestamptz = d.dead_lettered_at AS dead,
                (b ->> 'error_recorded_at')::timestamptz = a.ended_at AS error
            FROM vtq.q_dlq AS d JOIN vtq.q_attempts AS a USING (msg_id)
            CROSS JOIN LATERAL (SELECT d.headers -> 'vtq_dead_letter' AS b) AS l",
        )
        .await;

    assert_eq!(equal, json!({"first": true, "dead": true, "error": true}));
}

#[tokio::test]
async fn what_is_not_known_is_absent_rather_than_null() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q'); SELECT vtq.dead_letter('q', 1, 1)").await;

    let block = block(&s, 1).await;

    assert_eq!(
        without_instants(&s, block).await,
        json!({"version": 1, "reason": "permanent_failure", "source": "worker", "source_queue": "q", "attempts": 1,
            "max_attempts": 5, "read_ct": 1})
    );
}

#[tokio::test]
async fn a_reason_is_one_of_those_that_are_known() {
    let s = Session::with_queue("{}").await;
    let reasons = [
        ("permanent_failure", "permanent", "worker"),
        ("undecodable", "undecodable", "worker"),
        ("expired", "expired", "worker"),
        ("by_operator", "by_operator", "operator"),
    ];

    for (id, (reason, outcome, source)) in (1..).zip(reasons) {
        s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q')").await;
        s.run(&format!("SELECT vtq.dead_letter('q', {id}, 1, '{reason}')")).await;
        let block = block(&s, id).await;
        assert_eq!((&block["reason"], &block["source"]), (&json!(reason), &json!(source)));
        let recorded = s.values::<String>(&format!("SELECT outcome FROM vtq.attempts('q', {id})")).await;
        assert_eq!(recorded, [outcome]);
    }
    for (reason, shown) in [("'worker_died'", "\"worker_died\""), ("''", "\"\""), ("NULL", "null")] {
        assert_eq!(
            s.refusal(&format!("SELECT vtq.dead_letter('q', 1, 1, {reason})")).await,
            format!(
                "22023 reason {shown} is not known: give permanent_failure, undecodable, expired or by_operator"
            )
        );
    }
}

#[tokio::test]
async fn repeating_a_dead_letter_gives_the_same_answer_and_changes_nothing() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q'); SELECT vtq.dead_letter('q', 1, 1)").await;
    let before = s.rows("SELECT * FROM vtq.q_dlq").await;

    assert_eq!(s.value::<String>("SELECT vtq.dead_letter('q', 1, 1, 'undecodable')").await, "dead");

    assert_eq!(s.rows("SELECT * FROM vtq.q_dlq").await, before);
}

#[tokio::test]
async fn a_message_dies_with_all_that_it_was() {
    let s = Session::with_queue(r#"{"priorities": [3, 0]}"#).await;
    s.run(
        r#"SELECT vtq.send('q', '{"a": 1.10}', '{"b": null, "c": [1]}', priority => 3, max_attempts => 7,
            policy => '{"timeout": 5}', expires_at => '2999-01-01');
        SELECT vtq.read('q')"#,
    )
    .await;
    let columns =
        "msg_id, enqueued_at, last_read_at, expires_at, read_ct, refunded_ct, max_attempts, priority,
        policy, message";
    let before = s.row(&format!("SELECT {columns}, headers FROM vtq.q")).await;

    s.run("SELECT vtq.dead_letter('q', 1, 1)").await;

    let after =
        s.row(&format!("SELECT {columns}, headers - 'vtq_dead_letter' AS headers FROM vtq.q_dlq")).await;
    assert_eq!(after, before);
    assert_eq!(s.value::<String>("SELECT message ->> 'a' FROM vtq.q_dlq").await, "1.10");
}

#[tokio::test]
async fn long_texts_in_the_block_are_cut_by_characters_with_a_mark() {
    let s = Session::with_queue("{}").await;
    let texts = [
        ("repeat('é', 1000)", "'x'", 1000, 1, "é", "x"),
        ("repeat('😀', 1001)", "repeat('é', 2000)", 1000, 2000, "…", "é"),
        ("repeat('é', 20000)", "repeat('😀', 2001)", 1000, 2000, "…", "…"),
    ];

    for (id, (message, detail, message_length, trace_length, message_end, trace_end)) in (1..).zip(texts) {
        s.run(&format!(
            "SELECT vtq.send('q', '1'); SELECT vtq.read('q');
            SELECT vtq.dead_letter('q', {id}, 1, error => jsonb_build_object('message', {message}, 'detail', {detail}))"
        ))
        .await;
        let block = block(&s, id).await;
        let (message, trace) =
            (block["error_message"].as_str().unwrap(), block["backtrace"].as_str().unwrap());
        assert_eq!(
            (message.chars().count(), trace.chars().count()),
            (message_length, trace_length),
            "message {id}"
        );
        assert!(message.ends_with(message_end) && trace.ends_with(trace_end), "message {id}");
    }
}

#[tokio::test]
async fn a_backtrace_keeps_its_first_ten_lines() {
    let s = Session::with_queue("{}").await;

    for (id, lines) in [(1, 10), (2, 11), (3, 4000)] {
        s.run(&format!(
            r"SELECT vtq.send('q', '1'); SELECT vtq.read('q');
            SELECT vtq.dead_letter('q', {id}, 1, error => jsonb_build_object('detail',
                (SELECT string_agg('zeile ' || n, E'\n' ORDER BY n) FROM generate_series(1, {lines}) AS n)))"
        ))
        .await;
        let block = block(&s, id).await;
        let trace: Vec<&str> =
            block["backtrace"].as_str().expect("a detail alone is an error too").lines().collect();
        assert_eq!((trace.len(), trace[0], trace[9]), (10, "zeile 1", "zeile 10"), "{lines} lines");
    }
}

#[tokio::test]
async fn the_last_error_counts_though_the_last_delivery_left_none() {
    let s = Session::with_queue(r#"{"max_attempts": 2}"#).await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q'); SELECT vtq.fail('q', 1, 1, '\"before\"', '0')")
        .await;
    s.run("SELECT vtq.read('q')").await;
    s.make_visible(1).await;

    s.run("SELECT vtq.sweep('q')").await;

    let block = block(&s, 1).await;
    assert_eq!(block["reason"], "worker_died");
    assert_eq!((&block["error_message"], &block["error_attempt"]), (&json!("before"), &json!(1)));
}

#[tokio::test]
async fn headers_that_are_no_object_are_kept_beside_the_block() {
    let s = Session::with_queue("{}").await;

    for (id, headers) in (1..).zip(["[1, 2]", "\"text\"", "5", "null", "false"]) {
        s.run(&format!("INSERT INTO vtq.q (message, headers) VALUES ('1', '{headers}')")).await;
        s.run(&format!("SELECT vtq.read('q'); SELECT vtq.dead_letter('q', {id}, 1)")).await;
        let kept: Value =
            s.value(&format!("SELECT headers - 'vtq_dead_letter' FROM vtq.q_dlq WHERE msg_id = {id}")).await;
        assert_eq!(kept, json!({"vtq_original_headers": serde_json::from_str::<Value>(headers).unwrap()}));

        // A second trip puts nothing into a box within the box.
        s.run(&format!(
            "SELECT vtq.redrive('q', {id}); SELECT vtq.read('q'); SELECT vtq.dead_letter('q', {id}, 2)"
        ))
        .await;
        let again: Value = s
            .value(&format!(
                "SELECT headers - 'vtq_dead_letter' - 'vtq_redrives' FROM vtq.q_dlq WHERE msg_id = {id}"
            ))
            .await;
        assert_eq!(again, kept);
    }
}

#[tokio::test]
async fn forged_headers_of_vtq_stop_neither_death_nor_list_nor_redrive() {
    let s = Session::with_queue("{}").await;
    // A role that may only INSERT can write these.
    let forged = [
        r#"{"vtq_redrives": "many"}"#,
        r#"{"vtq_redrives": {"a": null}}"#,
        r#"{"vtq_redrives": null}"#,
        r#"{"vtq_redrives": 1.5}"#,
        r#"{"vtq_redrives": 2147483647}"#,
        r#"{"vtq_redrives": -7}"#,
        r#"{"vtq_redrives": 1e400}"#,
        r#"{"vtq_dead_letter": 5}"#,
        r#"{"vtq_dead_letter": {"reason": "mine", "extra": 1}}"#,
    ];
    for headers in forged {
        s.run(&format!("INSERT INTO vtq.q (message, headers) VALUES ('1', '{headers}')")).await;
    }
    s.run("SELECT vtq.dead_letter('q', r.msg_id, 1) FROM vtq.read('q', qty => 9) AS r").await;

    assert_eq!(s.count("vtq.dlq_list('q')").await, 9);
    assert_eq!(block(&s, 9).await["reason"], "permanent_failure");
    assert_eq!(block(&s, 9).await["extra"], Value::Null);
    assert_eq!(s.value::<i64>("SELECT vtq.redrive_all('q')").await, 9);
    assert_eq!(s.read(9).await.len(), 9);
}

#[tokio::test]
async fn letters_are_listed_from_the_last_to_die_page_by_page() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 25)").await;
    s.run("SELECT vtq.dead_letter('q', r.msg_id, 1) FROM vtq.read('q', qty => 25) AS r").await;
    // Five died at the same instant, across the edge of a page.
    s.run("UPDATE vtq.q_dlq SET dead_lettered_at = now() - interval '1 h' WHERE msg_id BETWEEN 8 AND 12")
        .await;
    let expected: Vec<i64> =
        s.values("SELECT msg_id FROM vtq.q_dlq ORDER BY dead_lettered_at DESC, msg_id DESC").await;

    let mut listed = Vec::new();
    let mut before = "NULL, NULL".to_owned();
    loop {
        let page = format!("SELECT msg_id, dead_lettered_at::text FROM vtq.dlq_list('q', 11, {before})");
        let page = s.client.query(&page, &[]).await.unwrap();
        let Some(last) = page.last() else { break };
        before = format!("'{}', {}", last.get::<_, String>(1), last.get::<_, i64>(0));
        listed.extend(page.iter().map(|row| row.get::<_, i64>(0)));
    }

    assert_eq!(listed, expected);
}

#[tokio::test]
async fn one_letter_is_shown_whole_and_an_unknown_one_not_at_all() {
    let s = Session::with_queue("{}").await;
    s.run(r#"SELECT vtq.send('q', '{"a": 1}', '{"b": 2}')"#).await;
    s.run("SELECT vtq.read('q'); SELECT vtq.dead_letter('q', 1, 1)").await;

    let shown = s
        .row("SELECT read_ct, headers - 'vtq_dead_letter' AS headers, message FROM vtq.dlq_show('q', 1)")
        .await;

    assert_eq!(shown, json!({"read_ct": 1, "headers": {"b": 2}, "message": {"a": 1}}));
    assert_eq!(s.rows("SELECT * FROM vtq.dlq_show('q', 2)").await, json!([]));
}

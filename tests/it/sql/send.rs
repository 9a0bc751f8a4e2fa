//! Sending: what goes in comes out, and what cannot go in is refused whole.

use serde_json::json;

use super::session::Session;

/// JSON texts as `jsonb` prints them.
const VALUES: [&str; 19] = [
    "null",
    "true",
    "false",
    "0",
    "-0.50",
    "1.10",
    "12345678901234567890123456789012345678901234567890",
    "0.12345678901234567890123456789012345678901234567890",
    "-9223372036854775809",
    "\"\"",
    "\"null\"",
    "\"'; DROP TABLE vtq.q; --\"",
    "\"\\\\u0000 \\\" \\n é 😀 \\u0001\"",
    "[]",
    "[null]",
    "[1, [2, [3, {}]]]",
    "{}",
    "{\"\": {\"\": \"\"}}",
    "{\"vtq_dead_letter\": {\"reason\": \"mine\"}}",
];

#[tokio::test]
async fn any_json_comes_back_as_it_was_sent() {
    let s = Session::with_queue("{}").await;

    for value in VALUES {
        let sent =
            s.client.query_one("SELECT vtq.send('q', $1::text::jsonb, '{\"n\": 1.10}')", &[&value]).await;
        let id: i64 = sent.unwrap().get(0);
        let read =
            s.client.query_one("SELECT msg_id, message::text, headers::text FROM vtq.read('q')", &[]).await;
        let read = read.unwrap();
        assert_eq!(read.get::<_, i64>(0), id);
        assert_eq!(read.get::<_, String>(1), value);
        assert_eq!(read.get::<_, String>(2), r#"{"n": 1.10}"#);
    }
}

#[tokio::test]
async fn digits_survive_the_archive_and_the_dead_letters_too() {
    let s = Session::with_queue("{}").await;
    let digits = format!("1{}.{}1", "0".repeat(300), "0".repeat(300));
    s.run(&format!("SELECT vtq.send_batch('q', '{{{digits},{digits}}}')")).await;
    s.read(2).await;

    s.run("SELECT vtq.ack('q', '{1}', '{1}'); SELECT vtq.dead_letter('q', 2, 1)").await;

    assert_eq!(s.value::<String>("SELECT message::text FROM vtq.q_archive").await, digits);
    assert_eq!(s.value::<String>("SELECT message::text FROM vtq.q_dlq").await, digits);
    s.run("SELECT vtq.redrive('q', 2)").await;
    assert_eq!(s.value::<String>("SELECT message::text FROM vtq.peek('q')").await, digits);
}

#[tokio::test]
async fn a_message_of_a_megabyte_passes() {
    let s = Session::with_queue("{}").await;

    s.run("SELECT vtq.send('q', to_jsonb(repeat('é', 1000000)))").await;

    let length: i32 = s.value("SELECT length(message #>> '{}') FROM vtq.read('q')").await;
    assert_eq!(length, 1_000_000);
}

#[tokio::test]
async fn sql_null_is_no_message() {
    let s = Session::with_queue("{}").await;
    let hint = "send the JSON 'null' if that is what you mean";

    assert_eq!(s.refusal("SELECT vtq.send('q', NULL)").await, format!("22023 message is null: {hint}"));
    assert_eq!(
        s.refusal("SELECT vtq.send_batch('q', '{1,NULL,3}')").await,
        format!("22023 message 2 is null: {hint}")
    );
    assert_eq!(
        s.refusal("SELECT vtq.send_batch('q', '[5:6]={1,NULL}')").await,
        format!("22023 message 2 is null: {hint}")
    );
    assert_eq!(s.refusal("SELECT vtq.send_batch('q', NULL)").await, "22023 messages is null: give an array");
    assert_eq!(s.count("vtq.q").await, 0);
}

#[tokio::test]
async fn an_array_of_arrays_is_no_batch() {
    let s = Session::with_queue("{}").await;

    let refusal = s.refusal("SELECT vtq.send_batch('q', '{{1,2},{3,4}}')").await;

    assert_eq!(refusal, "22023 messages has 2 dimensions, but must be a plain array");
}

#[tokio::test]
async fn headers_are_an_object_or_absent() {
    let s = Session::with_queue("{}").await;

    for (headers, kind) in
        [("[]", "array"), ("1", "number"), ("\"a\"", "string"), ("true", "boolean"), ("null", "null")]
    {
        assert_eq!(
            s.refusal(&format!("SELECT vtq.send('q', '1', '{headers}')")).await,
            format!("22023 headers are a JSON {kind}, but must be an object")
        );
        let batch = format!("SELECT vtq.send_batch('q', '{{1,2}}', ARRAY['{{}}', '{headers}']::jsonb[])");
        assert_eq!(
            s.refusal(&batch).await,
            format!("22023 headers of message 2 are a JSON {kind}, but must be an object")
        );
    }
    for headers in ["NULL", "'{}'", r#"'{"vtq": 1, "VTQ_x": 2, "x-vtq_": 3, "": null}'"#] {
        s.run(&format!("SELECT vtq.send('q', '1', {headers})")).await;
    }
    assert_eq!(s.count("vtq.q").await, 3);
}

#[tokio::test]
async fn header_keys_of_vtq_are_reserved() {
    let s = Session::with_queue("{}").await;

    for key in ["vtq_", "vtq_x", "vtq_dead_letter", "vtq_redrives", "vtq_original_headers"] {
        assert_eq!(
            s.refusal(&format!(r#"SELECT vtq.send('q', '1', '{{"a": 1, "{key}": 2}}')"#)).await,
            format!(r#"22023 header "{key}": keys that begin with vtq_ are vtq's own"#)
        );
    }
    assert_eq!(
        s.refusal(r#"SELECT vtq.send_batch('q', '{1,2}', ARRAY[NULL, '{"vtq_a": 1}']::jsonb[])"#).await,
        r#"22023 header "vtq_a" of message 2: keys that begin with vtq_ are vtq's own"#
    );
}

#[tokio::test]
async fn a_batch_has_headers_for_each_message_or_for_none() {
    let s = Session::with_queue("{}").await;

    assert_eq!(
        s.refusal("SELECT vtq.send_batch('q', '{1,2}', ARRAY['{}']::jsonb[])").await,
        "22023 headers has 1 elements, but must have one for each of the 2 messages"
    );
    let sent =
        s.values::<i64>(r#"SELECT vtq.send_batch('q', '{1,2}', ARRAY[NULL, '{"a": 1}']::jsonb[])"#).await;

    assert_eq!(sent, [1, 2]);
    let headers = s.rows("SELECT headers FROM vtq.q ORDER BY msg_id").await;
    assert_eq!(headers, json!([{"headers": null}, {"headers": {"a": 1}}]));
}

#[tokio::test]
async fn an_empty_batch_sends_nothing() {
    let s = Session::with_queue("{}").await;

    assert_eq!(s.values::<i64>("SELECT vtq.send_batch('q', '{}')").await, Vec::<i64>::new());
    assert_eq!(s.values::<i64>("SELECT vtq.send_batch('q', '{}', '{}')").await, Vec::<i64>::new());

    assert_eq!(s.count("vtq.q").await, 0);
}

#[tokio::test]
async fn a_hundred_thousand_keep_their_order() {
    let s = Session::with_queue("{}").await;

    s.run(
        "CREATE TEMP TABLE sent AS SELECT t.id, t.place
        FROM vtq.send_batch('q', ARRAY(SELECT to_jsonb(n) FROM generate_series(1, 100000) AS n))
            WITH ORDINALITY AS t (id, place)",
    )
    .await;

    let sql = "
        SELECT count(*), bool_and(m.message::integer = t.place) AS placed, bool_and(t.risen) AS risen
        FROM (SELECT *, id > coalesce(lag(id) OVER (ORDER BY place), 0) AS risen FROM sent) AS t
        JOIN vtq.q AS m ON m.msg_id = t.id";
    assert_eq!(s.row(sql).await, json!({"count": 100_000, "placed": true, "risen": true}));
}

#[tokio::test]
async fn options_of_a_send_are_checked_at_the_door() {
    let s = Session::with_queue(r#"{"priorities": [9, 0, -9]}"#).await;
    let cases = [
        ("priority => 1", r#"priority 1 is not a level of queue "q", which has {9,0,-9}"#),
        ("priority => 40000", r#"priority 40000 is not a level of queue "q", which has {9,0,-9}"#),
        (
            "max_attempts => 0",
            "max_attempts 0 is not allowed: it must be from 1 to 32767, the first run included",
        ),
        (
            "max_attempts => -1",
            "max_attempts -1 is not allowed: it must be from 1 to 32767, the first run included",
        ),
        (
            "max_attempts => 32768",
            "max_attempts 32768 is not allowed: it must be from 1 to 32767, the first run included",
        ),
        ("policy => '5'", r#"policy 5 is not allowed: give an object with "backoff", "timeout" or both"#),
        (
            "policy => 'null'",
            r#"policy null is not allowed: give an object with "backoff", "timeout" or both"#,
        ),
        (
            "policy => '{\"x\": 1}'",
            r#"policy key "x" is not known: a message's policy has "backoff" and "timeout""#,
        ),
        (
            "policy => '{\"timeout\": \"soon\"}'",
            r#"timeout "soon" is not a length of time: give seconds as a number, or an interval such as "30 s""#,
        ),
        (
            "policy => '{\"timeout\": 0}'",
            "timeout 00:00:00 is not allowed: it must be from 00:00:00.001 to 365 days",
        ),
        (
            "policy => '{\"backoff\": {\"base\": -1}}'",
            r#"backoff key "base" is -1, but must be a number from 0.001 to 31536000"#,
        ),
    ];

    for (option, sentence) in cases {
        for call in ["send('q', '1'", "send_batch('q', '{1}'"] {
            assert_eq!(
                s.refusal(&format!("SELECT vtq.{call}, {option})")).await,
                format!("22023 {sentence}")
            );
        }
    }
    assert_eq!(s.count("vtq.q").await, 0);
}

#[tokio::test]
async fn options_of_a_batch_hold_for_each_of_its_messages() {
    let s = Session::with_queue(r#"{"priorities": [9, 0]}"#).await;

    s.run(
        r#"SELECT vtq.send_batch('q', '{1,2}', delay => '1 h', priority => 9, max_attempts => 3,
            policy => '{"timeout": 7}', expires_at => '2999-01-01')"#,
    )
    .await;

    let rows = s
        .rows("SELECT ready_at - enqueued_at AS delay, priority, max_attempts, policy, expires_at FROM vtq.q")
        .await;
    let one = json!({"delay": "01:00:00", "priority": 9, "max_attempts": 3, "policy": {"timeout": 7},
        "expires_at": "2999-01-01T00:00:00+00:00"});
    assert_eq!(rows, json!([one, one]));
}

#[tokio::test]
async fn a_send_without_a_level_takes_0_or_else_the_last() {
    let s = Session::with_queue(r#"{"priorities": [9, 0, -9]}"#).await;
    s.run(r#"SELECT vtq.create_queue('r', '{"priorities": [3, 7]}')"#).await;

    s.run("SELECT vtq.send('q', '1'), vtq.send('r', '1')").await;

    assert_eq!(s.value::<i16>("SELECT priority FROM vtq.q").await, 0);
    assert_eq!(s.value::<i16>("SELECT priority FROM vtq.r").await, 7);
}

#[tokio::test]
async fn a_rolled_back_send_never_was() {
    let s = Session::with_queue("{}").await;

    s.run("BEGIN; CREATE TABLE purchase (); SELECT vtq.send('q', '1')").await;
    s.run("SELECT vtq.send_batch('q', '{2,3}'); ROLLBACK").await;

    assert_eq!(s.count("vtq.q").await, 0);
    assert!(s.value::<bool>("SELECT to_regclass('purchase') IS NULL").await);
}

#[tokio::test]
async fn a_committed_send_comes_with_the_callers_change() {
    let a = Session::with_queue("{}").await;
    let b = a.another().await;

    a.run("BEGIN; CREATE TABLE purchase (); SELECT vtq.send('q', '1')").await;
    let before = b.read(1).await;
    a.run("COMMIT").await;

    assert_eq!(before, Vec::<i64>::new());
    assert_eq!(b.count("purchase").await, 0);
    assert_eq!(b.read(1).await, [1]);
}

#[tokio::test]
async fn a_refused_send_leaves_a_savepoint_of_the_caller_alone() {
    let s = Session::with_queue("{}").await;

    s.run("BEGIN; SELECT vtq.send('q', '1'); SAVEPOINT here").await;
    assert_eq!(s.code("SELECT vtq.send('q', NULL)").await, "22023");
    s.run("ROLLBACK TO here; COMMIT").await;

    assert_eq!(s.count("vtq.q").await, 1);
}

#[tokio::test]
async fn a_plain_insert_is_a_send() {
    let s = Session::with_queue("{}").await;

    s.run(r#"INSERT INTO vtq.q (message) VALUES ('{"a": 1}')"#).await;

    let read = s.row("SELECT msg_id, read_ct, attempt, headers, message FROM vtq.read('q')").await;
    assert_eq!(read, json!({"msg_id": 1, "read_ct": 1, "attempt": 1, "headers": null, "message": {"a": 1}}));
}

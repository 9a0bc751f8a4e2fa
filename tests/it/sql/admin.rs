//! Creating, changing, pausing, dropping queues.

use serde_json::{Value, json};

use super::session::Session;

/// What `vtq.queue_options` answers for a queue that sets none.
fn defaults() -> Value {
    json!({"visibility_timeout": "30 s", "max_attempts": 5, "timeout": "15 min", "on_ack": "archive",
        "backoff": {"kind": "exponential", "base": 5, "max": 300, "jitter": 0.15}, "archive_retention": "7 days",
        "attempts_retention": "30 days", "dlq_retention": null, "priorities": [0], "aging": "1 hour",
        "exclusive_limit": 1, "group_on_dead": "continue", "max_in_flight": null, "rate": null, "key_rate": null,
        "unlogged": false})
}

async fn options(s: &Session) -> Value {
    s.value("SELECT vtq.queue_options('q')").await
}

#[tokio::test]
async fn a_queue_is_created_once_with_four_tables() {
    let s = Session::new().await;

    assert!(s.value::<bool>("SELECT vtq.create_queue('q')").await);
    assert!(!s.value::<bool>("SELECT vtq.create_queue('q')").await);

    let sql = "SELECT relname::text FROM pg_class
        WHERE relnamespace = 'vtq'::regnamespace AND relkind IN ('r', 'p') AND relname !~ '^_' ORDER BY 1";
    assert_eq!(s.values::<String>(sql).await, ["q", "q_archive", "q_attempts", "q_dlq"]);
    assert_eq!(options(&s).await, defaults());
}

#[tokio::test]
async fn creating_a_queue_that_is_there_waits_for_nobody() {
    let s = Session::with_queue("{}").await;
    let reader = s.another().await;
    reader
        .run("BEGIN; LOCK TABLE vtq.q, vtq.q_dlq, vtq.q_archive, vtq.q_attempts IN ACCESS SHARE MODE")
        .await;
    reader.run("SELECT FROM vtq._queue; SELECT vtq.send('q', '1')").await;

    s.run("SET lock_timeout = '2 s'; BEGIN; SELECT vtq.create_queue('q')").await;

    let locks = s
        .values::<String>(
            "SELECT DISTINCT mode FROM pg_locks
            WHERE pid = pg_backend_pid() AND relation::regclass::text ~ '^vtq\\.'",
        )
        .await;
    assert_eq!(locks, ["AccessShareLock"]);
}

#[tokio::test]
async fn fifty_sessions_create_one_queue() {
    let s = Session::new().await;

    let mut sessions = Vec::new();
    for _ in 0..50 {
        let session = s.another().await;
        sessions
            .push(tokio::spawn(async move { session.value::<bool>("SELECT vtq.create_queue('q')").await }));
    }
    let mut created = 0;
    for session in sessions {
        created += i32::from(session.await.unwrap());
    }

    assert_eq!(created, 1);
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q'); SELECT vtq.ack('q', '{1}', '{1}')").await;
    assert_eq!(s.count("vtq.q_archive").await, 1);
}

#[tokio::test]
async fn a_rolled_back_creation_leaves_nothing_and_can_be_repeated() {
    let s = Session::new().await;

    s.run("BEGIN; SELECT vtq.create_queue('q'); SELECT vtq.send('q', '1'); ROLLBACK").await;

    assert_eq!(s.code("SELECT vtq.send('q', '1')").await, "VT001");
    s.run("SELECT vtq.create_queue('q'); SELECT vtq.send('q', '1')").await;
    assert_eq!(s.count("vtq.q").await, 1);
}

#[tokio::test]
async fn other_options_than_those_of_a_queue_that_is_there_are_refused() {
    let s = Session::with_queue(r#"{"max_attempts": 8, "timeout": null}"#).await;
    let cases = [
        (r#"{"max_attempts": 9}"#, "max_attempts is 8, asked for 9"),
        (r#"{"max_attempts": 8, "on_ack": "delete"}"#, r#"on_ack is "archive", asked for "delete""#),
        (r#"{"timeout": 900}"#, "timeout is null, asked for 900"),
        (r#"{"unlogged": true}"#, "unlogged is false, asked for true"),
    ];

    for (other, difference) in cases {
        assert_eq!(
            s.refusal(&format!("SELECT vtq.create_queue('q', '{other}')")).await,
            format!(r#"VT002 queue "q" exists with other options: {difference}"#)
        );
    }
    assert_eq!(options(&s).await["max_attempts"], 8);
}

#[tokio::test]
async fn the_same_options_in_other_words_are_no_other_options() {
    let s =
        Session::with_queue(r#"{"max_attempts": 8, "visibility_timeout": 90, "backoff": {"base": 5}}"#).await;

    for same in [
        "{}",
        r#"{"max_attempts": 8}"#,
        r#"{"max_attempts": 8.0}"#,
        r#"{"visibility_timeout": 90.0}"#,
        r#"{"visibility_timeout": "90 s"}"#,
        r#"{"visibility_timeout": "00:01:30"}"#,
        r#"{"timeout": "15 min"}"#,
        r#"{"timeout": 900}"#,
        r#"{"archive_retention": "168 hours"}"#,
        r#"{"dlq_retention": null}"#,
        r#"{"backoff": {}}"#,
        r#"{"backoff": {"max": 300, "kind": "exponential"}}"#,
        r#"{"priorities": [0]}"#,
    ] {
        assert!(!s.value::<bool>(&format!("SELECT vtq.create_queue('q', '{same}')")).await, "{same}");
    }
}

#[tokio::test]
async fn options_are_checked_at_the_door() {
    let s = Session::new().await;
    let object = r#"are not allowed: give an object such as {"max_attempts": 8}"#;
    let attempts = "but must be a whole number from 1 to 32767: the runs allowed, the first included";
    let levels =
        "but must list 1 to 16 different whole numbers from -32768 to 32767, the one served first in front";
    let known = "a queue has aging, archive_retention, attempts_retention, backoff, dlq_retention, exclusive_limit, \
                 group_on_dead, key_rate, max_attempts, max_in_flight, on_ack, priorities, rate, timeout, unlogged, \
                 visibility_timeout";
    let cases = [
        ("[]", format!("options [] {object}")),
        ("null", format!("options null {object}")),
        (r#"{"max_retries": 3}"#, format!(r#"option "max_retries" is not known: {known}"#)),
        (r#"{"max_attempts": 0}"#, format!("option max_attempts is 0, {attempts}")),
        (r#"{"max_attempts": 1.5}"#, format!("option max_attempts is 1.5, {attempts}")),
        (r#"{"max_attempts": "5"}"#, format!(r#"option max_attempts is "5", {attempts}"#)),
        (r#"{"max_attempts": "x"}"#, format!(r#"option max_attempts is "x", {attempts}"#)),
        (r#"{"max_attempts": null}"#, format!("option max_attempts is null, {attempts}")),
        (r#"{"on_ack": "keep"}"#, r#"option on_ack is "keep", but must be "archive" or "delete""#.into()),
        (r#"{"unlogged": 1}"#, "option unlogged is 1, but must be true or false".into()),
        (
            r#"{"visibility_timeout": null}"#,
            "option visibility_timeout is null, but must be a length of time".into(),
        ),
        (r#"{"priorities": []}"#, format!("option priorities is [], {levels}")),
        (r#"{"priorities": [1, 1]}"#, format!("option priorities is [1, 1], {levels}")),
        (r#"{"priorities": [1, 1.0]}"#, format!("option priorities is [1, 1.0], {levels}")),
        (r#"{"priorities": [0.5]}"#, format!("option priorities is [0.5], {levels}")),
        (r#"{"priorities": [32768]}"#, format!("option priorities is [32768], {levels}")),
        (r#"{"priorities": [null]}"#, format!("option priorities is [null], {levels}")),
        (r#"{"priorities": ["1"]}"#, format!(r#"option priorities is ["1"], {levels}"#)),
        (r#"{"priorities": 3}"#, format!("option priorities is 3, {levels}")),
    ];

    for (options, sentence) in cases {
        let refusal = s.refusal(&format!("SELECT vtq.create_queue('q', '{options}')")).await;
        assert_eq!(refusal, format!("22023 {sentence}"));
    }
    assert!(s.refusal("SELECT vtq.create_queue('q', NULL)").await.starts_with("22023 options null"));
    assert_eq!(s.count("vtq._queue").await, 0);
}

#[tokio::test]
async fn an_option_that_is_set_leaves_the_others() {
    let s = Session::with_queue(r#"{"max_attempts": 8}"#).await;

    let answer: Value =
        s.value(r#"SELECT vtq.set_queue('q', '{"on_ack": "delete", "backoff": {"base": 1}}')"#).await;

    let mut expected = defaults();
    expected["max_attempts"] = json!(8);
    expected["on_ack"] = json!("delete");
    expected["backoff"]["base"] = json!(1);
    assert_eq!(answer, expected);
    assert_eq!(options(&s).await, expected);
}

#[tokio::test]
async fn a_json_null_means_none_where_there_is_a_none_and_the_default_elsewhere() {
    let s = Session::with_queue(
        r#"{"max_attempts": 8, "visibility_timeout": 9, "backoff": {"base": 1}, "on_ack": "delete", "priorities": [3],
            "timeout": 9, "archive_retention": 99, "attempts_retention": 99, "dlq_retention": 99, "aging": 9,
            "unlogged": false}"#,
    )
    .await;
    let all_null = r#"{"max_attempts": null, "visibility_timeout": null, "backoff": null, "on_ack": null, "priorities": null,
        "timeout": null, "archive_retention": null, "attempts_retention": null, "dlq_retention": null, "aging": null,
        "unlogged": null}"#;

    let answer: Value = s.value(&format!("SELECT vtq.set_queue('q', '{all_null}')")).await;

    let mut expected = defaults();
    for none in ["timeout", "archive_retention", "attempts_retention", "dlq_retention", "aging"] {
        expected[none] = Value::Null;
    }
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn options_that_are_set_are_checked_too() {
    let s = Session::with_queue("{}").await;

    for options in [
        "[]",
        "null",
        r#"{"x": 1}"#,
        r#"{"x": null}"#,
        r#"{"max_attempts": 0}"#,
        r#"{"backoff": {"base": -1}}"#,
        r#"{"unlogged": true}"#,
    ] {
        assert_eq!(s.code(&format!("SELECT vtq.set_queue('q', '{options}')")).await, "22023", "{options}");
    }
    assert_eq!(s.code("SELECT vtq.set_queue('q', NULL)").await, "22023");
    assert_eq!(options(&s).await, defaults());
}

#[tokio::test]
async fn a_level_that_messages_have_cannot_be_dropped() {
    let s = Session::with_queue(r#"{"priorities": [5, 0]}"#).await;
    s.run("SELECT vtq.send('q', '1', priority => 5)").await;

    assert_eq!(
        s.refusal(r#"SELECT vtq.set_queue('q', '{"priorities": [0]}')"#).await,
        r#"VT005 option priorities of queue "q" cannot drop level 5: messages of that level are waiting"#
    );
    assert_eq!(options(&s).await["priorities"], json!([5, 0]));
    s.run(r#"SELECT vtq.set_queue('q', '{"priorities": [0, 5, 9]}')"#).await;
    s.run(r#"SELECT vtq.cancel('q', 1); SELECT vtq.set_queue('q', '{"priorities": [0]}')"#).await;
    assert_eq!(options(&s).await["priorities"], json!([0]));
}

#[tokio::test]
async fn changes_at_once_do_not_lose_each_other() {
    let s = Session::with_queue("{}").await;
    let other = s.another().await;

    s.run(r#"BEGIN; SELECT vtq.set_queue('q', '{"max_attempts": 8}')"#).await;
    let second =
        tokio::spawn(async move { other.run(r#"SELECT vtq.set_queue('q', '{"timeout": 9}')"#).await });
    s.run("COMMIT").await;
    second.await.unwrap();

    let options = options(&s).await;
    assert_eq!((&options["max_attempts"], &options["timeout"]), (&json!(8), &json!(9)));
}

#[tokio::test]
async fn an_unlogged_queue_says_what_a_crash_does_to_it() {
    let s = Session::with_queue(r#"{"unlogged": true}"#).await;

    let row = s
        .row("SELECT relpersistence, obj_description(oid) ~ 'a crash of the server empties this table' AS warned
            FROM pg_class WHERE oid = 'vtq.q'::regclass")
        .await;

    assert_eq!(row, json!({"relpersistence": "u", "warned": true}));
    let logged = s.values::<String>(
        "SELECT relname::text FROM pg_class
        WHERE relname ~ '^q_' AND relkind = 'r' AND relpersistence = 'p' ORDER BY 1",
    );
    assert_eq!(logged.await, ["q_attempts", "q_dlq"], "only live messages are at risk");
}

#[tokio::test]
async fn a_pause_ends_by_itself() {
    let s = Session::with_queue("{}").await;
    s.send().await;
    s.run("SELECT vtq.pause('q', 'lunch', clock_timestamp() + interval '1 h')").await;
    assert_eq!(s.read(1).await, Vec::<i64>::new());

    s.run("UPDATE vtq._queue SET paused_until = clock_timestamp()").await;

    assert_eq!(
        s.row("SELECT paused_until, pause_reason FROM vtq.metrics('q')").await,
        json!({"paused_until": null, "pause_reason": null})
    );
    assert_eq!(s.read(1).await, [1]);
}

#[tokio::test]
async fn pause_and_resume_say_what_they_found() {
    let s = Session::with_queue("{}").await;

    assert!(!s.value::<bool>("SELECT vtq.resume('q')").await);
    assert!(s.value::<bool>("SELECT vtq.pause('q', 'a')").await);
    assert!(!s.value::<bool>("SELECT vtq.pause('q', 'b', '2999-01-01')").await);
    let paused = s.row("SELECT paused_until, pause_reason FROM vtq.metrics('q')").await;
    assert!(s.value::<bool>("SELECT vtq.resume('q')").await);

    assert_eq!(paused, json!({"paused_until": "2999-01-01T00:00:00+00:00", "pause_reason": "b"}));
}

#[tokio::test]
async fn what_is_in_flight_is_settled_during_a_pause() {
    let s = Session::with_queue("{}").await;
    s.run(
        "SELECT vtq.send('q', '1'); SELECT vtq.read('q'); SELECT vtq.pause('q'); SELECT vtq.send('q', '2')",
    )
    .await;

    assert_eq!(s.values::<i64>("SELECT vtq.extend('q', '{1}', '{1}')").await, [1]);
    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, [1]);
}

#[tokio::test]
async fn dropping_a_queue_takes_all_of_it_and_nothing_else() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.create_queue('r'); SELECT vtq.send('r', '1')").await;
    s.run("SELECT vtq.send_batch('q', '{1,2}')").await;
    s.run("SELECT vtq.read('q', qty => 2); SELECT vtq.dead_letter('q', 1, 1)").await;
    s.run("SELECT vtq.ack('q', '{2}', '{1}'); SELECT vtq._doze('{q,r}', 'w', '1 min')").await;

    assert!(s.value::<bool>("SELECT vtq.drop_queue('q')").await);
    assert!(!s.value::<bool>("SELECT vtq.drop_queue('q')").await);

    assert_eq!(s.count("pg_class WHERE relname ~ '^_?q([_.]|$)'").await, 0);
    assert_eq!(
        s.values::<String>("SELECT queue FROM vtq._queue UNION ALL SELECT queue FROM vtq._sleeper").await,
        ["r"; 2]
    );
    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.read('r')").await, [1]);
}

#[tokio::test]
async fn a_queue_without_its_own_functions_says_so_and_is_repaired() {
    let s = Session::with_queue("{}").await;
    s.run("DROP FUNCTION vtq.\"_q.ack\"").await;

    let refusal = s.refusal("SELECT vtq.ack('q', '{1}', '{1}')").await;
    assert_eq!(refusal, "VT004 queue \"q\" lacks its own functions, such as vtq.\"_q.read\"");

    assert!(!s.value::<bool>("SELECT vtq.create_queue('q')").await);
    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, Vec::<i64>::new());
}

#[tokio::test]
async fn a_dropped_queue_leaves_nothing_behind() {
    let s = Session::new().await;
    let objects = "SELECT count(*) FROM (
        SELECT oid FROM pg_class WHERE relnamespace = 'vtq'::regnamespace
        UNION ALL SELECT oid FROM pg_proc WHERE pronamespace = 'vtq'::regnamespace) AS o";
    let before = s.value::<i64>(objects).await;

    s.run("SELECT vtq.create_queue('q'); SELECT vtq.maintain('q'); SELECT vtq.drop_queue('q')").await;

    assert_eq!(s.value::<i64>(objects).await, before);
}

//! Reading: who gets what, in which order, and what is left alone.

use serde_json::json;

use super::session::{Session, seed};

#[tokio::test]
async fn the_line_is_ordered_by_due_time_and_then_by_id() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 200)").await;
    let seed = seed(&s).await;
    // Ten instants for two hundred messages, so that many share theirs.
    let shuffle = format!(
        "SELECT setseed({seed});
        WITH due AS MATERIALIZED (SELECT msg_id, now() - floor(1 + random() * 10) * interval '1 s' AS at FROM vtq.q)
        UPDATE vtq.q AS m SET ready_at = due.at, vt = due.at FROM due WHERE due.msg_id = m.msg_id"
    );
    s.run(&shuffle).await;
    let expected: Vec<i64> = s.values("SELECT msg_id FROM vtq.q ORDER BY ready_at, msg_id").await;

    let mut seen = Vec::new();
    for qty in [1, 7, 100, 92] {
        seen.extend(s.read(qty).await);
    }

    assert_eq!(seen, expected);
}

#[tokio::test]
async fn messages_of_one_instant_come_in_the_order_they_were_sent() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 500)").await;

    assert_eq!(s.read(500).await, (1..=500).collect::<Vec<i64>>());
}

#[tokio::test]
async fn levels_are_served_in_the_order_the_queue_lists_them() {
    let s = Session::with_queue(r#"{"priorities": [0, 10, -5]}"#).await;
    for level in [-5, 10, 0, -5, 10, 0] {
        s.run(&format!("SELECT vtq.send('q', '1', priority => {level})")).await;
    }

    let first = s.rows("SELECT msg_id, priority FROM vtq.read('q', qty => 3)").await;
    let rest = s.rows("SELECT msg_id, priority FROM vtq.read('q', qty => 9)").await;

    let place = |id: i32, level: i32| json!({"msg_id": id, "priority": level});
    assert_eq!(first, json!([place(3, 0), place(6, 0), place(2, 10)]));
    assert_eq!(rest, json!([place(5, 10), place(1, -5), place(4, -5)]));
}

#[tokio::test]
async fn a_floor_holds_for_its_own_level_only() {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3}', priority => 1), vtq.send_batch('q', '{4,5,6}')").await;
    let floors = |first: &str, second: &str| {
        format!(
            "SELECT r.msg_id FROM vtq.read('q', '1 min', 9,
                ARRAY[
                    (SELECT ready_at FROM vtq.q WHERE msg_id = {first}),
                    (SELECT ready_at FROM vtq.q WHERE msg_id = {second})
                ],
                ARRAY[{first}, {second}]::bigint[]) AS r"
        )
    };

    let behind = s.values::<i64>(&floors("2", "NULL")).await;

    assert_eq!(behind, [3, 4, 5, 6]);
    assert_eq!(s.read(9).await, [1, 2], "what lies before a floor is found from the front");
}

#[tokio::test]
async fn missing_floors_mean_the_front() {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    s.run("SELECT vtq.send('q', '1', priority => 1), vtq.send('q', '2')").await;

    for floors in ["'{}', '{}'", "'{NULL}', '{NULL}'", "'{NULL,NULL}', NULL"] {
        let sql = format!("SELECT msg_id FROM vtq.read('q', '1 min', 9, {floors})");
        assert_eq!(s.values::<i64>(&sql).await, [1, 2], "{floors}");
        s.run("SELECT vtq.release('q', array_agg(msg_id), array_agg(read_ct)) FROM vtq.q").await;
    }
}

#[tokio::test]
async fn a_quantity_is_from_1_to_10000() {
    let s = Session::with_queue("{}").await;

    for qty in ["0", "-1", "10001", "2147483647", "-2147483648", "NULL"] {
        for call in [
            "read('q', qty => $)",
            "peek('q', $)",
            "sweep('q', $)",
            "redrive_all('q', $)",
            "dlq_purge('q', older_than => '0', qty => $)",
            "dlq_list('q', $)",
        ] {
            let sentence =
                format!("22023 qty {} is not allowed: it must be from 1 to 10000", qty.to_lowercase());
            assert_eq!(s.refusal(&format!("SELECT vtq.{}", call.replace('$', qty))).await, sentence);
        }
    }
    assert_eq!(s.read(10_000).await, Vec::<i64>::new());
}

#[tokio::test]
async fn a_paused_queue_hands_out_nothing_and_shows_what_it_holds_back() {
    let s = Session::with_queue("{}").await;
    s.send().await;
    s.run("SELECT vtq.pause('q', 'maintenance')").await;

    let read = s.read(1).await;
    let peeked = s.values::<i64>("SELECT msg_id FROM vtq.peek('q')").await;
    s.run("SELECT vtq.resume('q')").await;

    assert_eq!((read, peeked), (vec![], vec![1]));
    assert_eq!(s.read(1).await, [1]);
}

#[tokio::test]
async fn peek_changes_nothing() {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    s.run("SELECT vtq.send_batch('q', '{1,2}')").await;
    s.run("SELECT vtq.send('q', '3', priority => 1), vtq.send('q', '4', delay => '1 h')").await;
    let before = s.rows("SELECT * FROM vtq.q ORDER BY msg_id").await;

    let peeked = s.values::<i64>("SELECT msg_id FROM vtq.peek('q', 9)").await;

    assert_eq!(peeked, [3, 1, 2]);
    assert_eq!(s.rows("SELECT * FROM vtq.q ORDER BY msg_id").await, before);
    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.peek('q', 2)").await, [3, 1]);
}

#[tokio::test]
async fn a_read_says_what_it_hands_out() {
    let s = Session::with_queue(r#"{"priorities": [4], "timeout": "90 s"}"#).await;
    s.run(r#"SELECT vtq.send('q', '{"a": 1}', '{"b": 2}')"#).await;

    let read = s
        .row(
            "SELECT r.msg_id, r.read_ct, r.attempt, r.headers, r.message, r.priority, r.timeout,
                r.ready_at = m.ready_at AS ready, r.enqueued_at = m.enqueued_at AS enqueued,
                r.last_read_at BETWEEN now() AND clock_timestamp() AS just_now, r.vt - r.last_read_at AS length
            FROM vtq.q AS m CROSS JOIN vtq.read('q', '7 s') AS r",
        )
        .await;

    assert_eq!(
        read,
        json!({"msg_id": 1, "read_ct": 1, "attempt": 1, "headers": {"b": 2}, "message": {"a": 1}, "priority": 4,
            "timeout": "00:01:30", "ready": true, "enqueued": true, "just_now": true, "length": "00:00:07"})
    );
}

#[tokio::test]
async fn the_timeout_of_a_run_is_the_messages_own_or_the_queues() {
    let s = Session::with_queue(r#"{"timeout": "90 s"}"#).await;
    for policy in
        ["NULL", r#"'{"timeout": 7}'"#, r#"'{"timeout": "2 min"}'"#, r#"'{"timeout": null}'"#, "'{}'"]
    {
        s.run(&format!("SELECT vtq.send('q', '1', policy => {policy})")).await;
    }

    let timeouts = s.values::<Option<String>>("SELECT timeout::text FROM vtq.read('q', qty => 9)").await;

    let expected = [Some("00:01:30"), Some("00:00:07"), Some("00:02:00"), None, Some("00:01:30")];
    assert_eq!(timeouts, expected.map(|timeout| timeout.map(str::to_owned)));
}

#[tokio::test]
async fn delayed_and_leased_messages_are_not_handed_out() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1', delay => '1 h'); SELECT vtq.send('q', '2')").await;

    assert_eq!(s.read(9).await, [2]);
    assert_eq!(s.read(9).await, Vec::<i64>::new());
}

#[tokio::test]
async fn an_open_read_is_passed_by_and_a_rolled_back_one_never_was() {
    let a = Session::with_queue("{}").await;
    let b = a.another().await;
    a.send().await;
    a.send().await;

    a.run("BEGIN").await;
    assert_eq!(a.read(1).await, [1]);
    assert_eq!(b.read(9).await, [2]);
    assert_eq!(b.read(9).await, Vec::<i64>::new());
    a.run("ROLLBACK").await;

    let again = b.row("SELECT msg_id, read_ct, attempt FROM vtq.read('q')").await;
    assert_eq!(again, json!({"msg_id": 1, "read_ct": 1, "attempt": 1}));
}

#[tokio::test]
async fn a_message_that_commits_late_is_found_from_the_front() {
    let a = Session::with_queue("{}").await;
    let b = a.another().await;

    a.run("BEGIN").await;
    assert_eq!((a.send().await, b.send().await), (1, 2));
    let floor =
        "SELECT r.msg_id FROM vtq.read('q', '1 min', 9, ARRAY['-infinity']::timestamptz[], '{0}') AS r";
    assert_eq!(b.values::<i64>(floor).await, [2]);
    a.run("COMMIT").await;

    assert_eq!(b.read(9).await, [1]);
}

#[tokio::test]
async fn a_lapsed_lease_is_taken_over_and_written_down() {
    let s = Session::with_queue("{}").await;
    let id = s.send().await;
    s.read(1).await;
    s.make_visible(id).await;
    let lapsed = s.row("SELECT last_read_at AS started_at, vt AS ended_at FROM vtq.q").await;

    let read = s.row("SELECT msg_id, read_ct, attempt FROM vtq.read('q')").await;

    assert_eq!(read, json!({"msg_id": id, "read_ct": 2, "attempt": 2}));
    let attempt = s.row("SELECT read_ct, attempt, outcome, error_message FROM vtq.attempts('q', 1)").await;
    assert_eq!(attempt, json!({"read_ct": 1, "attempt": 1, "outcome": "abandoned", "error_message": null}));
    assert_eq!(s.row("SELECT started_at, ended_at FROM vtq.q_attempts").await, lapsed);
}

#[tokio::test]
async fn a_message_at_the_end_of_the_counter_dies_and_stops_nobody() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 102)").await;
    // One with its budget spent, one with the whole of it left.
    s.run("UPDATE vtq.q SET read_ct = 2147483647 WHERE msg_id <= 2").await;
    s.run("UPDATE vtq.q SET refunded_ct = 2147483647 WHERE msg_id = 2").await;

    let read = s.read(200).await;

    assert_eq!(read, (3..=102).collect::<Vec<i64>>());
    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.q_dlq ORDER BY msg_id").await, [1, 2]);
}

#[tokio::test]
async fn a_read_that_comes_back_short_moves_the_exhausted_and_the_expired() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    s.send().await;
    s.run("SELECT vtq.send('q', '2', expires_at => now() + interval '1 h')").await;
    s.run("SELECT vtq.read('q'); UPDATE vtq.q SET expires_at = now() WHERE msg_id = 2").await;
    s.make_visible(1).await;

    assert_eq!(s.read(1).await, Vec::<i64>::new());

    let dead = s.rows("SELECT msg_id, reason FROM vtq.dlq_list('q') ORDER BY msg_id").await;
    assert_eq!(dead, json!([{"msg_id": 1, "reason": "worker_died"}, {"msg_id": 2, "reason": "expired"}]));
}

#[tokio::test]
async fn a_broken_policy_of_one_row_does_not_stop_the_others() {
    let s = Session::with_queue(r#"{"timeout": "90 s"}"#).await;
    // A role that may only INSERT can write these.
    for policy in [
        r#"{"timeout": "soon"}"#,
        r#"{"timeout": -1}"#,
        r#"{"timeout": {}}"#,
        r#"{"timeout": 1e300}"#,
        r#""timeout""#,
        r#"["timeout"]"#,
        "7",
    ] {
        s.run(&format!("INSERT INTO vtq.q (message, policy) VALUES ('1', '{policy}')")).await;
    }
    s.send().await;

    let timeouts = s.values::<Option<String>>("SELECT timeout::text FROM vtq.peek('q', 9)").await;

    assert_eq!(timeouts, [const { Some("00:01:30") }; 8].map(|timeout| timeout.map(str::to_owned)));
    assert_eq!(s.read(9).await.len(), 8);
}

#[tokio::test]
async fn four_readers_get_each_message_once() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg(to_jsonb(n))) FROM generate_series(1, 1000) AS n").await;

    let mut readers = Vec::new();
    for _ in 0..4 {
        let session = s.another().await;
        readers.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                let ids = session.read(7).await;
                let leases = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
                let acked =
                    format!("SELECT vtq.ack('q', '{{{leases}}}', array_fill(1, ARRAY[{}]))", ids.len());
                assert_eq!(session.values::<i64>(&acked).await.len(), ids.len());
                if ids.is_empty() {
                    return seen;
                }
                seen.extend(ids);
            }
        }));
    }
    let mut seen = Vec::new();
    for reader in readers {
        seen.extend(reader.await.unwrap());
    }

    seen.sort_unstable();
    assert_eq!(seen, (1..=1000).collect::<Vec<i64>>());
    assert_eq!((s.count("vtq.q").await, s.count("vtq.q_archive").await), (0, 1000));
}

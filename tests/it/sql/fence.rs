//! The fence: who holds the lease, and what a call without it does, which is nothing.

use std::time::Duration;

use serde_json::{Value, json};
use vtq_tests::wait_until;

use super::session::Session;

/// Each settling verb on the lease of message `$id`, delivery `$ct`, and what it answers when that is stale.
const VERBS: [(&str, &str); 6] = [
    ("SELECT vtq.ack('q', '{$id}', '{$ct}') AS id", "[]"),
    ("SELECT vtq.extend('q', '{$id}', '{$ct}', '5 min') AS id", "[]"),
    ("SELECT outcome, vt FROM vtq.fail('q', $id, $ct, '\"late\"')", r#"[{"outcome": "stale", "vt": null}]"#),
    ("SELECT outcome, vt FROM vtq.defer('q', $id, $ct, '1 s')", r#"[{"outcome": "stale", "vt": null}]"#),
    ("SELECT vtq.release('q', '{$id}', '{$ct}') AS id", "[]"),
    ("SELECT vtq.dead_letter('q', $id, $ct) AS answer", r#"[{"answer": "stale"}]"#),
];

fn call(verb: &str, id: i64, read_ct: i32) -> String {
    verb.replace("$id", &id.to_string()).replace("$ct", &read_ct.to_string())
}

/// Calls each verb with its own message, and expects each to be stale.
async fn assert_all_stale(s: &Session, first_id: i64, read_ct: i32) {
    for (id, (verb, stale)) in (first_id..).zip(VERBS) {
        let sql = call(verb, id, read_ct);
        let answer = match verb.starts_with("SELECT outcome") {
            true => s.rows(&sql).await,
            // A function in the select list of a subquery that nobody reads would not run.
            false => s.rows(&format!("{sql} OFFSET 0")).await,
        };
        assert_eq!(answer, serde_json::from_str::<Value>(stale).unwrap(), "{sql}");
    }
}

/// Everything that there is of queue `q`.
async fn all_of_it(s: &Session) -> Value {
    s.row(
        "SELECT (SELECT jsonb_agg(to_jsonb(m) ORDER BY m.msg_id) FROM vtq.q AS m) AS live,
            (SELECT jsonb_agg(to_jsonb(a) ORDER BY a.msg_id, a.read_ct) FROM vtq.q_attempts AS a) AS attempts,
            (SELECT count(*) FROM vtq.q_dlq) AS dead, (SELECT count(*) FROM vtq.q_archive) AS archived",
    )
    .await
}

#[tokio::test]
async fn after_a_real_timeout_the_first_holder_can_do_nothing_to_the_second() {
    let a = Session::with_queue("{}").await;
    let b = a.another().await;
    a.run("SELECT vtq.send_batch('q', '{1,2,3,4,5,6}')").await;

    assert_eq!(a.values::<i32>("SELECT read_ct FROM vtq.read('q', '1 s', 6)").await, [1; 6]);
    assert_eq!(b.read(6).await, Vec::<i64>::new());
    let mut taken = Vec::new();
    wait_until(Duration::from_secs(10), "the timeout of a second", async || {
        taken.extend(b.read(6).await);
        taken.len() == 6
    })
    .await;
    let held = all_of_it(&b).await;

    assert_all_stale(&a, 1, 1).await;
    assert_eq!(all_of_it(&b).await, held);
    let acked = b.values::<i64>("SELECT vtq.ack('q', '{1,2,3,4,5,6}', '{2,2,2,2,2,2}')").await;
    assert_eq!(acked, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_delivery_that_is_settled_is_stale_to_every_verb_but_its_own_repetition() {
    let s = Session::with_queue("{}").await;
    let settle = [
        ("vtq.ack('q', ARRAY[id], ARRAY[1])", [0, 1, 2, 3, 4, 5].as_slice()),
        ("vtq.fail('q', id, 1, NULL, '0 s')", &[0, 1, 3, 4, 5]),
        ("vtq.defer('q', id, 1, '0 s')", &[0, 1, 2, 4, 5]),
        ("vtq.release('q', ARRAY[id], ARRAY[1])", &[0, 1, 2, 3, 4, 5]),
        ("vtq.dead_letter('q', id, 1)", &[0, 1, 2, 3, 4]),
        ("vtq.cancel('q', id)", &[0, 1, 2, 3, 4, 5]),
    ];

    for (settled, stale_verbs) in settle {
        let id = s.send().await;
        assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq.read('q') ORDER BY 1").await, [id], "{settled}");
        s.run(&format!("SELECT {settled} FROM (SELECT {id}::bigint AS id) AS m")).await;
        let before = all_of_it(&s).await;
        for verb in stale_verbs {
            let (verb, stale) = VERBS[*verb];
            let answer = s.rows(&format!("{} OFFSET 0", call(verb, id, 1))).await;
            assert_eq!(answer, serde_json::from_str::<Value>(stale).unwrap(), "{verb} after {settled}");
        }
        assert_eq!(all_of_it(&s).await, before, "after {settled}");
        s.run("TRUNCATE vtq.q").await;
    }
}

#[tokio::test]
async fn another_delivery_than_the_one_in_hand_is_stale() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3,4,5,6}'); SELECT vtq.read('q', qty => 6)").await;
    let before = all_of_it(&s).await;

    for read_ct in [-1, 0, 2, i32::MAX] {
        assert_all_stale(&s, 1, read_ct).await;
    }
    assert_all_stale(&s, 7, 1).await;

    assert_eq!(all_of_it(&s).await, before);
}

#[tokio::test]
async fn a_message_that_nobody_reads_has_no_lease() {
    let s = Session::with_queue("{}").await;
    // By a send, by a plain INSERT that is delayed, and by one that hides its row.
    for insert in [
        "SELECT vtq.send('q', '1')",
        "INSERT INTO vtq.q (message, ready_at) VALUES ('1', now() + interval '1 h')",
        "INSERT INTO vtq.q (message, vt) VALUES ('1', now() + interval '1 h')",
    ] {
        s.run(&format!("TRUNCATE vtq.q; ALTER TABLE vtq.q ALTER msg_id RESTART; {}", [insert; 6].join(";")))
            .await;
        let before = all_of_it(&s).await;

        assert_all_stale(&s, 1, 0).await;

        assert_eq!(all_of_it(&s).await, before, "{insert}");
    }
}

#[tokio::test]
async fn a_late_settlement_that_nobody_overtook_is_good() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3,4,5,6}'); SELECT vtq.read('q', qty => 6)").await;
    for id in 1..=6 {
        s.make_visible(id).await;
    }
    // The sweep writes the lapse down; it takes nothing from the holder.
    s.run("SELECT vtq.sweep('q')").await;

    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, [1]);
    assert_eq!(s.values::<i64>("SELECT vtq.extend('q', '{2}', '{1}')").await, [2]);
    assert_eq!(s.value::<String>("SELECT outcome FROM vtq.fail('q', 3, 1)").await, "retry");
    assert_eq!(s.value::<String>("SELECT outcome FROM vtq.defer('q', 4, 1, '1 s')").await, "deferred");
    assert_eq!(s.values::<i64>("SELECT vtq.release('q', '{5}', '{1}')").await, [5]);
    assert_eq!(s.value::<String>("SELECT vtq.dead_letter('q', 6, 1)").await, "dead");

    let outcomes =
        s.rows("SELECT msg_id, outcome FROM vtq.q_attempts WHERE msg_id > 2 ORDER BY msg_id").await;
    assert_eq!(
        outcomes,
        json!([{"msg_id": 3, "outcome": "failed"}, {"msg_id": 4, "outcome": "deferred"},
            {"msg_id": 5, "outcome": "released"}, {"msg_id": 6, "outcome": "permanent"}])
    );
}

#[tokio::test]
async fn extend_counts_from_now() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q', '12 h')").await;

    s.run("SELECT vtq.extend('q', '{1}', '{1}', '10 s')").await;

    let left: f64 = s.value("SELECT extract(epoch FROM vt - clock_timestamp())::float8 FROM vtq.q").await;
    assert!((5.0..=10.0).contains(&left), "{left} s");
}

#[tokio::test]
async fn a_lease_that_is_named_twice_is_settled_once() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3}'); SELECT vtq.read('q', qty => 3)").await;

    for verb in ["extend", "release", "ack"] {
        let one = if verb == "ack" { 3 } else { 1 };
        let sql = format!("SELECT vtq.{verb}('q', '{{3,{one},3,{one},2}}', '{{1,1,1,1,9}}')");
        let mut expected = vec![one, 3];
        expected.dedup();
        assert_eq!(s.values::<i64>(&sql).await, expected, "{verb}");
        s.run("SELECT vtq.read('q', qty => 3); UPDATE vtq.q SET read_ct = 1, refunded_ct = 0").await;
    }
    assert_eq!(s.count("vtq.q_archive").await, 1);
}

#[tokio::test]
async fn answers_are_in_the_order_of_the_ids() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 50)").await;
    s.read(50).await;
    let reversed =
        "(SELECT array_agg(n ORDER BY n DESC) FROM generate_series(1, 50) AS n), array_fill(1, ARRAY[50])";
    let expected: Vec<i64> = (1..=50).collect();

    for verb in ["extend", "release", "ack"] {
        assert_eq!(s.values::<i64>(&format!("SELECT vtq.{verb}('q', {reversed})")).await, expected, "{verb}");
        s.run("SELECT vtq.read('q', qty => 50); UPDATE vtq.q SET read_ct = 1, refunded_ct = 0").await;
    }
}

#[tokio::test]
async fn leases_are_paired_by_position() {
    let s = Session::with_queue("{}").await;
    let rule = "they are leases, paired by position";

    for verb in ["ack", "extend", "release"] {
        for (ids, cts, lengths) in [
            ("'{1,2}'", "'{1}'", "2 elements and read_cts 1"),
            ("'{}'", "'{1}'", "0 elements and read_cts 1"),
            ("NULL", "'{1}'", "null elements and read_cts 1"),
            ("'{1}'", "NULL", "1 elements and read_cts null"),
            ("NULL", "NULL", "null elements and read_cts null"),
        ] {
            assert_eq!(
                s.refusal(&format!("SELECT vtq.{verb}('q', {ids}, {cts})")).await,
                format!("22023 msg_ids has {lengths}: {rule}")
            );
        }
        for nothing in ["'{}', '{}'", "'{NULL,1}', '{1,NULL}'"] {
            let sql = format!("SELECT vtq.{verb}('q', {nothing})");
            assert_eq!(s.values::<i64>(&sql).await, Vec::<i64>::new(), "{sql}");
        }
    }
}

#[tokio::test]
async fn half_a_lease_is_refused() {
    let s = Session::with_queue("{}").await;

    for verb in ["fail('q', $)", "defer('q', $, '1 s')", "dead_letter('q', $)"] {
        for (lease, got) in [("NULL, 1", "null and 1"), ("1, NULL", "1 and null")] {
            assert_eq!(
                s.refusal(&format!("SELECT vtq.{}", verb.replace('$', lease))).await,
                format!("22023 a lease is a msg_id and the read_ct that came with it; got {got}")
            );
        }
    }
}

#[tokio::test]
async fn an_acked_message_is_archived_whole() {
    let s = Session::with_queue("{}").await;
    s.run(r#"SELECT vtq.send('q', '{"a": 1}', '{"b": 2}'); SELECT vtq.read('q')"#).await;
    let live =
        "SELECT msg_id, enqueued_at, last_read_at, read_ct, refunded_ct, priority, headers, message FROM";
    let before = s.row(&format!("{live} vtq.q")).await;

    s.run("SELECT vtq.ack('q', '{1}', '{1}')").await;

    assert_eq!(s.row(&format!("{live} vtq.q_archive")).await, before);
    assert_eq!((s.count("vtq.q").await, s.count("vtq.q_attempts").await), (0, 0));
}

#[tokio::test]
async fn a_queue_that_deletes_keeps_nothing_of_an_acked_message() {
    let s = Session::with_queue(r#"{"on_ack": "delete"}"#).await;
    s.send().await;
    s.read(1).await;

    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1,1}', '{1,1}')").await, [1]);

    assert_eq!((s.count("vtq.q").await, s.count("vtq.q_archive").await), (0, 0));
}

#[tokio::test]
async fn an_ack_that_is_rolled_back_leaves_the_lease() {
    let s = Session::with_queue("{}").await;
    s.send().await;
    s.read(1).await;

    s.run("BEGIN; SELECT vtq.ack('q', '{1}', '{1}'); ROLLBACK").await;

    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, [1]);
}

#[tokio::test]
async fn batches_over_the_same_messages_do_not_deadlock() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 300)").await;
    s.read(300).await;

    let mut sessions = Vec::new();
    for order in ["ASC", "DESC", "ASC", "DESC"] {
        let session = s.another().await;
        let ids = format!("(SELECT array_agg(n ORDER BY n {order}) FROM generate_series(1, 300) AS n)");
        sessions.push(tokio::spawn(async move {
            for _ in 0..15 {
                session.run(&format!("SELECT vtq.extend('q', {ids}, array_fill(1, ARRAY[300]))")).await;
            }
            session
                .values::<i64>(&format!("SELECT vtq.ack('q', {ids}, array_fill(1, ARRAY[300]))"))
                .await
                .len()
        }));
    }
    let mut acked = 0;
    for session in sessions {
        acked += session.await.unwrap();
    }

    assert_eq!(acked, 300);
}

#[tokio::test]
async fn a_late_ack_that_nobody_overtook_corrects_what_the_sweep_wrote_down() {
    for on_ack in ["archive", "delete"] {
        let s = Session::with_queue(&format!(r#"{{"on_ack": "{on_ack}"}}"#)).await;
        s.run("SELECT vtq.send('q', '1'); SELECT vtq.read('q', '1 ms')").await;
        s.run("SELECT pg_sleep(0.01); SELECT vtq.sweep('q')").await;
        let outcomes = "SELECT outcome FROM vtq.q_attempts";
        assert_eq!(s.values::<String>(outcomes).await, ["abandoned"], "{on_ack}");

        assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1}', '{1}')").await, [1], "{on_ack}");

        assert_eq!(s.values::<String>(outcomes).await, ["late_success"], "{on_ack}");
    }
}

#[tokio::test]
async fn lease_that_stands_beside_wrong_ones_of_its_message_is_found() {
    for options in ["{}", r#"{"on_ack": "delete"}"#] {
        let s = Session::with_queue(options).await;
        s.run("SELECT vtq.send_batch('q', '{1,2,3,4}'); SELECT vtq.read('q', '1 min', 4)").await;
        let leases = "'{4,2,1,1,2,3,2,null}', '{9,1,1,null,2,0,null,1}'";

        let extended = s.values::<i64>(&format!("SELECT vtq.extend('q', {leases}, '5 min')")).await;
        let acked = s.values::<i64>(&format!("SELECT vtq.ack('q', {leases})")).await;

        assert_eq!((extended, acked), (vec![1, 2], vec![1, 2]), "{options}");
    }
}

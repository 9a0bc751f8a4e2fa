//! Unique keys and retries: what peers get wrong while a failed message waits for its next try.

use serde_json::json;

use super::session::Session;
use super::unique::{archived, live, send};

const STARTED: &str = ", unique_until => 'started'";
const DEBOUNCE: &str = ", on_conflict => 'replace', delay => '1 min', max_wait => '1 h'";

/// Peers keep the lock in a table of its own, with a TTL: it lapses during a long backoff, or is reaped by age, and a
/// producer that sends every few seconds gets a second copy in beside the retry. Both run.
#[tokio::test]
async fn a_key_lives_through_every_retry() {
    let s = Session::with_queue(r#"{"max_attempts": 6}"#).await;
    send(&s, 1, "").await;

    for read_ct in 1..=5 {
        assert_eq!(s.read(1).await, [1]);
        assert_eq!(send(&s, 2, "").await, json!([1, "skipped"]));
        s.run(&format!("SELECT vtq.fail('q', 1, {read_ct}, '\"down\"', '1 day')")).await;
        // The record of the key is the row: nothing that goes by age can take it away.
        s.run("UPDATE vtq.q SET enqueued_at = enqueued_at - interval '10 years'").await;
        s.run("SELECT vtq.sweep('q'), vtq.maintain('q')").await;
        assert_eq!(send(&s, 2, "").await, json!([1, "skipped"]));
        s.make_visible(1).await;
    }

    assert_eq!(s.read(1).await, [1]);
    s.run("SELECT vtq.fail('q', 1, 6)").await;
    assert_eq!(send(&s, 2, "").await, json!([2, "sent"]));
}

/// In a peer the lock of a worker that was killed stayed for a day; in another a hard stop freed it, and two ran.
#[tokio::test]
async fn a_key_survives_its_killed_holder_and_comes_back_with_the_message() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, "").await;
    s.run("SELECT vtq.read('q', '1 ms'); SELECT pg_sleep(0.002)").await;

    assert_eq!(send(&s, 2, "").await, json!([1, "skipped"]));
    assert_eq!(s.read(9).await, [1], "the message itself, and no other");
}

#[tokio::test]
async fn a_started_message_frees_its_key() {
    let s = Session::with_queue("{}").await;

    assert_eq!(send(&s, 1, STARTED).await, json!([1, "sent"]));
    assert_eq!(send(&s, 2, STARTED).await, json!([1, "skipped"]), "it waits");
    s.read(1).await;
    assert_eq!(send(&s, 3, STARTED).await, json!([2, "sent"]), "it runs");
    assert_eq!(send(&s, 4, STARTED).await, json!([2, "skipped"]));

    assert_eq!(live(&s).await, json!([[1, 1], [2, 3]]));
}

/// In a peer the key stayed free once the job had started: its retry and the newer copy ran side by side.
#[tokio::test]
async fn a_waiting_retry_yields_to_a_newer_send() {
    for on_conflict in ["skip", "replace", "error"] {
        let s = Session::with_queue(r#"{"on_ack": "delete"}"#).await;
        send(&s, 1, STARTED).await;
        s.read(1).await;
        s.run("SELECT vtq.fail('q', 1, 1, '\"x\"', '1 h')").await;

        let answer = send(&s, 2, &format!("{STARTED}, on_conflict => '{on_conflict}'")).await;

        assert_eq!(answer, json!([2, "superseded"]), "{on_conflict}");
        assert_eq!(live(&s).await, json!([[2, 2]]));
        // Never silently: also where successes are not kept.
        assert_eq!(archived(&s).await, json!([[1, 1, 2]]));
        let why = s.value::<String>("SELECT vtq.explain('q', 1) ->> 'why'").await;
        assert!(why.starts_with("message 2 superseded it at "), "{why}");
    }
}

/// In a peer the retry of the older job came back, found the key taken by the newer one, and failed with a unique
/// violation that took the batch around it along; in another it conflicted with itself.
#[tokio::test]
async fn a_failure_takes_its_key_back_or_yields_to_a_newer_copy() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, STARTED).await;
    s.read(1).await;
    let fail = |read_ct: i32| {
        format!("SELECT outcome, vt IS NULL AS is_over FROM vtq.fail('q', 1, {read_ct}, '\"x\"', '0')")
    };

    assert_eq!(s.row(&fail(1)).await, json!({"outcome": "retry", "is_over": false}));
    assert!(!s.value::<bool>("SELECT is_key_free FROM vtq.q").await, "it waits with its key");
    assert_eq!(s.read(1).await, [1]);
    send(&s, 2, STARTED).await;
    assert_eq!(s.row(&fail(2)).await, json!({"outcome": "superseded", "is_over": true}));

    assert_eq!(live(&s).await, json!([[2, 2]]));
    assert_eq!(archived(&s).await, json!([[1, 1, 2]]));
    // The reply was lost: the same call, the same answer.
    assert_eq!(s.row(&fail(2)).await, json!({"outcome": "superseded", "is_over": true}));
    let last = s.row("SELECT outcome, reason, error_message, vt FROM vtq.q_attempts WHERE read_ct = 2").await;
    assert_eq!(
        last,
        json!({"outcome": "failed", "reason": "superseded by message 2", "error_message": "x", "vt": null})
    );
}

#[tokio::test]
async fn whoever_is_given_back_yields_too() {
    for (give_back, told) in [
        ("SELECT outcome FROM vtq.defer('q', 1, 1, '1 h', 'busy')", json!([{"outcome": "superseded"}])),
        (
            "SELECT r AS msg_id FROM vtq.release('q', '{1,3}', '{1,1}') AS r",
            json!([{"msg_id": 1}, {"msg_id": 3}]),
        ),
    ] {
        let s = Session::with_queue("{}").await;
        send(&s, 1, STARTED).await;
        s.read(1).await;
        send(&s, 2, STARTED).await;
        s.run("SELECT vtq.send('q', '3'); UPDATE vtq.q SET ready_at = '2999-01-01', vt = '2999-01-01' WHERE msg_id = 2")
            .await;
        assert_eq!(s.read(1).await, [3]);

        assert_eq!(s.rows(give_back).await, told);

        // A neighbour in the same call is not harmed.
        assert_eq!(live(&s).await, json!([[2, 2], [3, 3]]), "{give_back}");
        assert_eq!(archived(&s).await, json!([[1, 1, 2]]));
        assert_eq!(s.rows(give_back).await, if give_back.contains("defer") { told } else { json!([]) });
    }
}

/// In peers a freed lock lets the newer copy run first, and the older retry then overwrites its result.
#[tokio::test]
async fn an_older_copy_does_not_run_again_after_a_newer_one_is_done() {
    for on_ack in ["archive", "delete"] {
        let s = Session::with_queue(&format!(r#"{{"on_ack": "{on_ack}"}}"#)).await;
        send(&s, 1, STARTED).await;
        s.read(1).await;
        send(&s, 2, STARTED).await;
        assert_eq!(s.read(1).await, [2]);
        s.run("SELECT vtq.ack('q', '{2}', '{1}')").await;
        s.run("SELECT vtq.maintain('q')").await;

        let outcome: String = s.value("SELECT outcome FROM vtq.fail('q', 1, 1, NULL, '0')").await;

        assert_eq!(outcome, "superseded");
        assert_eq!(s.read(9).await, Vec::<i64>::new());
        assert_eq!(s.value::<i64>("SELECT superseded_by FROM vtq.q_archive WHERE msg_id = 1").await, 2);
        s.run("SELECT vtq.maintain('q')").await;
        assert_eq!(s.count("vtq._taken").await, 0, "nobody is left that it means something for");
    }
}

#[tokio::test]
async fn an_older_copy_that_succeeds_late_is_done() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, STARTED).await;
    s.read(1).await;
    send(&s, 2, STARTED).await;
    s.read(1).await;

    let acked = s.values::<i64>("SELECT vtq.ack('q', '{2,1}', '{1,1}')").await;

    assert_eq!(acked, [1, 2]);
    assert_eq!(archived(&s).await, json!([[1, 1, null], [2, 2, null]]));
}

/// The worker dies: no statement runs when a lease lapses, so the next reader must not hand the older copy out.
#[tokio::test]
async fn a_lapsed_lease_yields_to_a_newer_copy() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, STARTED).await;
    s.run("SELECT vtq.send('q', '9')").await;
    s.read(2).await;
    assert_eq!(send(&s, 2, STARTED).await, json!([3, "sent"]));
    for id in [1, 2] {
        s.make_visible(id).await;
    }

    // A reader passes it over, and the sweep of the read that came back short brings it away.
    let mut read = s.read(9).await;
    read.sort_unstable();
    assert_eq!(read, [2, 3]);

    assert_eq!(live(&s).await, json!([[2, 9], [3, 2]]));
    assert_eq!(archived(&s).await, json!([[1, 1, 3]]));
    let recorded = s.values::<String>("SELECT outcome FROM vtq.q_attempts ORDER BY msg_id").await;
    assert_eq!(recorded, ["abandoned", "abandoned"]);
}

#[tokio::test]
async fn a_lapsed_lease_without_a_newer_copy_comes_back() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, STARTED).await;
    s.read(1).await;
    s.make_visible(1).await;

    assert_eq!(s.read(9).await, [1]);
    assert_eq!(s.value::<String>("SELECT outcome FROM vtq.fail('q', 1, 2, NULL, '0')").await, "retry");
}

#[tokio::test]
async fn a_cancelled_newer_copy_lets_the_older_one_go_on() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, STARTED).await;
    s.read(1).await;
    send(&s, 2, STARTED).await;
    s.run("SELECT vtq.cancel('q', 2)").await;

    assert_eq!(s.value::<String>("SELECT outcome FROM vtq.fail('q', 1, 1, NULL, '0')").await, "retry");
    assert_eq!(s.read(9).await, [1]);
}

/// A message that failed four times and is replaced would have one run left for a payload that never ran.
#[tokio::test]
async fn a_replaced_retry_is_superseded_and_the_new_payload_has_a_whole_budget() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, "").await;
    s.read(1).await;
    s.run("SELECT vtq.fail('q', 1, 1, '\"x\"', '1 h')").await;

    assert_eq!(send(&s, 2, ", on_conflict => 'replace'").await, json!([2, "superseded"]));

    let read = s.row("SELECT msg_id, attempt, message FROM vtq.read('q')").await;
    assert_eq!(read, json!({"msg_id": 2, "attempt": 1, "message": 2}));
    assert_eq!(archived(&s).await, json!([[1, 1, 2]]));
}

#[tokio::test]
async fn a_debounce_moves_the_due_time_up_to_its_ceiling_and_the_latest_payload_wins() {
    let s = Session::with_queue("{}").await;
    let due = "SELECT date_trunc('minute', ready_at - enqueued_at + interval '1 s')::text FROM vtq.q";
    assert_eq!(send(&s, 1, DEBOUNCE).await, json!([1, "sent"]));
    assert_eq!(s.value::<String>(due).await, "00:01:00");

    // As if the first send were half an hour ago, then an hour but half a minute.
    let ages = [("30 min", "00:31:00"), ("59.5 min", "01:00:00"), ("2 h", "01:00:00")];
    for ((age, expected), payload) in ages.into_iter().zip(2..) {
        s.run(&format!(
            "UPDATE vtq.q SET enqueued_at = clock_timestamp() - interval '{age}',
                debounce_until = clock_timestamp() - interval '{age}' + interval '1 h'"
        ))
        .await;
        assert_eq!(send(&s, payload, DEBOUNCE).await, json!([1, "replaced"]));
        let is_due: bool = s.value("SELECT ready_at <= clock_timestamp() FROM vtq.q").await;
        match age {
            "2 h" => assert!(is_due, "past its ceiling it is due, whatever is sent"),
            _ => assert_eq!(s.value::<String>(due).await, expected, "{age}"),
        }
    }

    assert_eq!(s.row("SELECT msg_id, message FROM vtq.read('q')").await, json!({"msg_id": 1, "message": 4}));
}

/// Elsewhere what is sent while the debounced job runs is dropped, or its retry overwrites what came later.
#[tokio::test]
async fn a_debounce_loses_nothing_that_is_sent_during_a_run() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, DEBOUNCE).await;
    s.make_visible(1).await;
    s.read(1).await;

    assert_eq!(send(&s, 2, DEBOUNCE).await, json!([2, "sent"]));
    assert_eq!(send(&s, 3, DEBOUNCE).await, json!([2, "replaced"]));
    assert_eq!(s.value::<String>("SELECT outcome FROM vtq.fail('q', 1, 1, NULL, '0')").await, "superseded");

    assert_eq!(live(&s).await, json!([[2, 3]]));
    s.make_visible(2).await;
    s.read(1).await;
    s.run("SELECT vtq.fail('q', 2, 1, NULL, '1 h')").await;
    assert_eq!(send(&s, 4, DEBOUNCE).await, json!([3, "superseded"]));
    assert_eq!(archived(&s).await, json!([[1, 1, 2], [2, 3, 3]]));
}

#[tokio::test]
async fn a_redrive_of_a_taken_key_is_refused_with_its_holder() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, "").await;
    s.run("SELECT vtq.read('q'); SELECT vtq.dead_letter('q', 1, 1)").await;
    send(&s, 2, ", unique_for => '1 h'").await;
    let sentence = r#"VT007 unique_key "k" of dead letter q/1 is taken by message 2"#;

    assert_eq!(s.refusal("SELECT vtq.redrive('q', 1)").await, sentence);
    assert_eq!(s.count("vtq.q_dlq").await, 1, "it stays where it was");

    s.run("SELECT vtq.read('q'); SELECT vtq.ack('q', '{2}', '{1}')").await;
    assert_eq!(s.refusal("SELECT vtq.redrive('q', 1)").await, sentence, "within the time after success");
    s.run("DELETE FROM vtq._taken").await;
    assert!(s.value::<bool>("SELECT vtq.redrive('q', 1)").await);
    assert_eq!(send(&s, 3, "").await, json!([1, "skipped"]), "it has its key again");
}

/// In a peer one conflict wedged the whole rescue batch.
#[tokio::test]
async fn redriving_all_leaves_the_conflicts_and_says_how_many() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    let (listener, mut heard) = s.overheard().await;
    for _ in 0..2 {
        s.run("SELECT vtq.send_batch('q', '{1,2,3,4}', unique_keys => '{a,b,c,d}')").await;
        s.run("SELECT vtq.fail('q', r.msg_id, r.read_ct) FROM vtq.read('q', qty => 9) AS r").await;
    }
    s.run("SELECT vtq.send('q', '5', unique_key => 'a')").await;

    let first: i64 = listener.value("SELECT vtq.redrive_all('q', 3)").await;
    let second: i64 = listener.value("SELECT vtq.redrive_all('q', 3)").await;
    let third: i64 = listener.value("SELECT vtq.redrive_all('q', 3)").await;

    // The oldest of each key goes back; those of `a` are in nobody's way though they are the oldest.
    assert_eq!((first, second, third), (3, 0, 0));
    let keys = s.values::<String>("SELECT unique_key FROM vtq.q ORDER BY 1").await;
    assert_eq!(keys, ["a", "b", "c", "d"]);
    assert_eq!(s.count("vtq.q_dlq").await, 5);
    let notice = std::iter::from_fn(|| heard.try_recv().ok()).find_map(|message| match message {
        tokio_postgres::AsyncMessage::Notice(notice) => Some(notice.message().to_owned()),
        _ => None,
    });
    assert_eq!(notice.as_deref(), Some(r#"5 dead letters of queue "q" stay: their unique_key is taken"#));
}

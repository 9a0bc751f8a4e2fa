//! Unique keys with several at once: one live message, nobody gets an error, and whoever must wait gets the right answer.

use serde_json::json;

use super::races::started;
use super::session::Session;
use super::unique::{archived, live, send};

const SEND: &str = "SELECT msg_id, outcome FROM vtq.send_report('q', '2', unique_key => 'k')";

#[tokio::test]
async fn eight_senders_of_one_key_make_one_message() {
    let s = Session::with_queue("{}").await;
    let mut senders = Vec::new();
    for _ in 0..8 {
        let session = s.another().await;
        senders.push(tokio::spawn(async move {
            let mut sent = Vec::new();
            for round in 0..50 {
                let sql = format!(
                    "SELECT jsonb_build_array(msg_id, outcome)
                    FROM vtq.send_report('q', '1', unique_key => 'k{round}')"
                );
                sent.push(session.value::<serde_json::Value>(&sql).await);
            }
            sent
        }));
    }
    let mut answers = Vec::new();
    for sender in senders {
        answers.push(sender.await.unwrap());
    }

    for round in 0..50 {
        let of_round: Vec<_> = answers.iter().map(|answers| &answers[round]).collect();
        assert_eq!(of_round.iter().filter(|answer| answer[1] == "sent").count(), 1, "{of_round:?}");
        assert!(of_round.iter().all(|answer| answer[0] == of_round[0][0]), "{of_round:?}");
    }
    assert_eq!(s.count("vtq.q").await, 50);
}

/// Sends, reads, failures, acks and restarts of one key from eight sessions at once.
#[tokio::test]
async fn a_key_is_never_held_twice_whatever_its_users_do() {
    for until in ["done", "started"] {
        let s = Session::with_queue(r#"{"max_attempts": 1000, "backoff": {"kind": "fixed", "base": 0.001}}"#)
            .await;
        let mut users = Vec::new();
        for user in 0..8_u32 {
            let session = s.another().await;
            users.push(tokio::spawn(async move {
                for round in 0..60_u32 {
                    let how = ["skip", "replace"][(round % 2) as usize];
                    session
                        .run(&format!(
                            "SELECT vtq.send('q', '{round}', unique_key => 'k', on_conflict => '{how}',
                                unique_until => '{until}')"
                        ))
                        .await;
                    let end = match (user + round) % 4 {
                        0 => "vtq.ack('q', ARRAY[r.msg_id], ARRAY[r.read_ct])",
                        1 => "vtq.release('q', ARRAY[r.msg_id], ARRAY[r.read_ct])",
                        _ => "vtq.fail('q', r.msg_id, r.read_ct, NULL, '0')",
                    };
                    // Two statements, two transactions: others come in between.
                    let read = session.rows("SELECT msg_id, read_ct FROM vtq.read('q', qty => 2)").await;
                    for lease in read.as_array().unwrap() {
                        let lease = format!(
                            "(VALUES ({}, {})) AS r (msg_id, read_ct)",
                            lease["msg_id"], lease["read_ct"]
                        );
                        session.run(&format!("SELECT {end} FROM {lease}")).await;
                    }
                }
            }));
        }
        for user in users {
            user.await.unwrap();
        }

        let waiting: i64 = s.value("SELECT count(*) FROM vtq.q WHERE vt = ready_at").await;
        assert!(waiting <= 1, "{until}: {waiting} wait with one key");
        let all: i64 = s.value("SELECT count(*) FROM vtq.q").await;
        assert_eq!(all, waiting, "{until}: nobody holds a lease any more");
        let sent: i64 = s.value("SELECT last_value FROM vtq._q_seq").await;
        assert!(sent > 10, "{until}: {sent} ids were drawn, so nothing was settled meanwhile");
    }
}

#[tokio::test]
async fn a_second_sender_waits_for_the_first_ones_transaction() {
    let s = Session::with_queue("{}").await;

    s.run("BEGIN; SELECT vtq.send('q', '1', unique_key => 'k')").await;
    let second = started(&s, SEND).await;
    s.run("COMMIT").await;

    assert_eq!(second.await.unwrap(), json!([{"msg_id": 1, "outcome": "skipped"}]));
}

#[tokio::test]
async fn a_second_sender_goes_in_when_the_first_one_is_undone() {
    let s = Session::with_queue("{}").await;

    s.run("BEGIN; SELECT vtq.send('q', '1', unique_key => 'k')").await;
    let second = started(&s, SEND).await;
    s.run("ROLLBACK").await;

    assert_eq!(second.await.unwrap()[0]["outcome"], "sent");
    assert_eq!(s.count("vtq.q").await, 1);
}

#[tokio::test]
async fn a_skipping_sender_waits_for_nobody_who_works_on_the_message() {
    let s = Session::with_queue("{}").await;
    let other = s.another().await;
    s.run("SELECT vtq.send('q', '1', unique_key => 'k')").await;

    s.run("BEGIN; SELECT vtq.read('q')").await;
    other.run("SET lock_timeout = '1 ms'").await;
    let answer = other.row(SEND).await;
    s.run("COMMIT").await;

    assert_eq!(answer, json!({"msg_id": 1, "outcome": "skipped"}));
}

#[tokio::test]
async fn a_key_is_taken_until_the_ack_has_committed() {
    for (unique_for, outcome) in [("NULL", "sent"), ("'1 h'", "skipped")] {
        let s = Session::with_queue("{}").await;
        let other = s.another().await;
        s.run(&format!("SELECT vtq.send('q', '1', unique_key => 'k', unique_for => {unique_for})")).await;
        s.read(1).await;

        s.run("BEGIN; SELECT vtq.ack('q', '{1}', '{1}')").await;
        let before = other.row(SEND).await;
        s.run("COMMIT").await;
        let after = other.row(SEND).await;

        assert_eq!(before, json!({"msg_id": 1, "outcome": "skipped"}));
        assert_eq!(after["outcome"], outcome, "{unique_for}");
        assert_eq!(s.count("vtq.q").await, i64::from(outcome == "sent"));
    }
}

#[tokio::test]
async fn a_failure_that_meets_a_sender_yields_once_it_has_committed() {
    for (end, outcome, left) in
        [("COMMIT", "superseded", json!([[2, 2]])), ("ROLLBACK", "retry", json!([[1, 1]]))]
    {
        let s = Session::with_queue("{}").await;
        send(&s, 1, ", unique_until => 'started'").await;
        s.read(1).await;

        s.run("BEGIN; SELECT vtq.send('q', '2', unique_key => 'k', unique_until => 'started')").await;
        let failure = started(&s, "SELECT outcome FROM vtq.fail('q', 1, 1, NULL, '1 h')").await;
        s.run(end).await;

        assert_eq!(failure.await.unwrap(), json!([{"outcome": outcome}]), "{end}");
        assert_eq!(live(&s).await, left);
    }
}

#[tokio::test]
async fn a_replacement_that_meets_a_reader_is_skipped_and_not_lost_on_it() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, "").await;

    s.run("BEGIN; SELECT vtq.read('q')").await;
    let replacement = started(
        &s,
        "SELECT msg_id, outcome FROM vtq.send_report('q', '2', unique_key => 'k', on_conflict => 'replace')",
    )
    .await;
    s.run("COMMIT").await;

    assert_eq!(replacement.await.unwrap(), json!([{"msg_id": 1, "outcome": "skipped"}]));
    assert_eq!(live(&s).await, json!([[1, 1]]));
}

#[tokio::test]
async fn two_who_supersede_one_retry_make_one_message() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, ", unique_until => 'started'").await;
    s.read(1).await;
    s.run("SELECT vtq.fail('q', 1, 1, NULL, '1 h')").await;

    s.run("BEGIN; SELECT vtq.send('q', '2', unique_key => 'k', unique_until => 'started')").await;
    let second = started(&s, SEND).await;
    s.run("COMMIT").await;

    let winner = s.value::<i64>("SELECT msg_id FROM vtq.q").await;
    assert_eq!(second.await.unwrap(), json!([{"msg_id": winner, "outcome": "skipped"}]));
    assert_eq!(archived(&s).await, json!([[1, 1, winner]]));
}

#[tokio::test]
async fn a_redrive_that_meets_a_sender_is_refused_in_words() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, "").await;
    s.run("SELECT vtq.read('q'); SELECT vtq.dead_letter('q', 1, 1)").await;

    s.run("BEGIN; SELECT vtq.send('q', '2', unique_key => 'k')").await;
    let redrive = started(&s, "SELECT vtq.redrive_all('q') AS moved OFFSET 0").await;
    s.run("COMMIT").await;

    assert_eq!(redrive.await.unwrap(), json!([{"moved": 0}]));
    assert_eq!(s.count("vtq.q_dlq").await, 1);
}

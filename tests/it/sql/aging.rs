//! Priority: strict between levels, but what has been ready longer than the queue's aging goes first.

use serde_json::json;

use super::session::Session;

/// Two levels, 100 messages in the low one and the high one filled.
async fn flooded(options: &str) -> Session {
    let s = Session::with_queue(options).await;
    s.run("SELECT vtq.send_batch('q', array_fill('\"low\"'::jsonb, ARRAY[100]), priority => 0)").await;
    refill(&s).await;
    s
}

/// Fills the high level up to 50, as a flood would.
async fn refill(s: &Session) {
    s.run(
        "SELECT vtq.send_batch('q', array_fill('\"high\"'::jsonb, ARRAY[
            50 - (SELECT count(*) FROM vtq.q WHERE priority = 10)::integer
        ]), priority => 10)",
    )
    .await;
}

/// Lets time pass for all that is in the queue.
async fn pass(s: &Session, length: &str) {
    s.run(&format!(
        "UPDATE vtq.q SET ready_at = ready_at - '{length}'::interval, vt = vt - '{length}'::interval"
    ))
    .await;
}

/// Reads ten and acks them; answers how many were of the low level.
async fn work(s: &Session) -> i64 {
    s.value(
        "SELECT count(*) FILTER (WHERE m.message = '\"low\"')
        FROM (
            SELECT array_agg(r.msg_id) AS ids, array_agg(r.read_ct) AS cts, array_agg(r.message) AS messages
            FROM vtq.read('q', '1 min', 10) AS r
        ) AS read
        CROSS JOIN LATERAL vtq.ack('q', read.ids, read.cts) WITH ORDINALITY AS a (msg_id, place)
        CROSS JOIN LATERAL (SELECT read.messages[array_position(read.ids, a.msg_id)] AS message) AS m",
    )
    .await
}

#[tokio::test]
async fn a_level_kept_full_does_not_starve_the_ones_below() {
    let s = flooded(r#"{"priorities": [10, 0], "aging": "10 min"}"#).await;
    let mut done = 0;

    // A minute a round: the low level waits for ten rounds, and then each takes ten of it.
    for round in 1..=20 {
        pass(&s, "61 s").await;
        refill(&s).await;
        let low = work(&s).await;
        assert!(round >= 10 || low == 0, "strict until then: {low} in round {round}");
        done += low;
    }

    assert_eq!(done, 100);
}

#[tokio::test]
async fn without_aging_a_level_kept_full_starves_the_ones_below() {
    let s = flooded(r#"{"priorities": [10, 0], "aging": null}"#).await;

    for round in 1..=30 {
        pass(&s, "1 day").await;
        refill(&s).await;
        assert_eq!(work(&s).await, 0, "round {round}");
    }
}

#[tokio::test]
async fn of_the_aged_the_level_with_the_oldest_front_goes_first() {
    let s = Session::with_queue(r#"{"priorities": [9, 5, 0]}"#).await;
    for (level, hours) in [(9, 3), (0, 4), (5, 2), (9, 0), (5, 0), (0, 5)] {
        s.run(&format!(
            "INSERT INTO vtq.q (priority, ready_at, vt, message)
            SELECT {level}, t, t, to_jsonb('{level}/{hours}'::text)
            FROM (SELECT clock_timestamp() - '{hours} h'::interval AS t) AS t"
        ))
        .await;
    }

    let expected = ["0/5", "0/4", "9/3", "5/2", "9/0", "5/0"];
    assert_eq!(s.values::<String>("SELECT message #>> '{}' FROM vtq.peek('q', 9)").await, expected);
    assert_eq!(s.values::<String>("SELECT message #>> '{}' FROM vtq.read('q', '1 min', 9)").await, expected);
}

#[tokio::test]
async fn one_by_one_the_aged_are_one_line() {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    for hours in 2..=7 {
        s.run(&format!(
            "INSERT INTO vtq.q (priority, ready_at, vt, message)
            SELECT {hours} % 2, t, t, '{hours}' FROM (SELECT clock_timestamp() - '{hours} h'::interval AS t) AS t"
        ))
        .await;
    }

    for hours in (2..=7).rev() {
        let peeked = s.values::<String>("SELECT message #>> '{}' FROM vtq.peek('q')").await;
        assert_eq!(s.values::<String>("SELECT message #>> '{}' FROM vtq.read('q')").await, peeked);
        assert_eq!(peeked, [hours.to_string()]);
    }
}

#[tokio::test]
async fn a_floor_holds_for_its_level_and_for_no_other() {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3}', priority => 0); SELECT vtq.send_batch('q', '{4,5}', priority => 1)").await;
    s.run("UPDATE vtq.q SET ready_at = ready_at - '2 h'::interval, vt = vt - '2 h'::interval WHERE priority = 0").await;

    // As a worker does: it was handed 1 of the low level, and then 2, 4.
    assert_eq!(s.read(1).await, [1]);
    let read = "SELECT r.msg_id FROM (SELECT ready_at, msg_id FROM vtq.q WHERE msg_id = 1) AS f,
        vtq.read('q', '1 min', 9, ARRAY[NULL, f.ready_at], ARRAY[NULL, f.msg_id]) AS r";
    assert_eq!(s.values::<i64>(read).await, [2, 3, 4, 5]);
}

#[tokio::test]
async fn aging_counts_from_when_a_message_is_due() {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    s.run("SELECT vtq.send('q', '\"low\"', priority => 0); SELECT vtq.send('q', '\"high\"', priority => 1)")
        .await;
    // Sent long ago, with a delay that has just ended.
    s.run("UPDATE vtq.q SET enqueued_at = enqueued_at - '9 h'::interval").await;

    assert_eq!(s.read(1).await, [2]);
}

#[tokio::test]
async fn one_level_reads_as_if_there_were_no_aging() {
    let s = Session::with_queue(r#"{"aging": "1 ms"}"#).await;
    s.send().await;
    pass(&s, "1 h").await;

    // Both in one transaction: the counters are those of the transaction.
    let scans = s
        .row(
            "SELECT (SELECT count(*) FROM vtq.read('q', '1 min')) AS read,
                (SELECT idx_scan FROM pg_stat_xact_user_tables WHERE relid = 'vtq.q'::regclass) AS scans",
        )
        .await;

    assert_eq!(scans, json!({"read": 1, "scans": 2}), "the arrivals and the line, once each");
}

//! Unique keys at the send: at most one live message has a key, and the sender is told what became of its own.

use serde_json::{Value, json};

use super::session::Session;

/// The answer of `vtq.send_report` for key `k` of queue `q`, with more arguments.
pub(super) async fn send(s: &Session, message: i32, more: &str) -> Value {
    let answer =
        s.row(&format!("SELECT * FROM vtq.send_report('q', '{message}', unique_key => 'k'{more})")).await;
    json!([answer["msg_id"], answer["outcome"]])
}

/// The live messages: id, payload.
pub(super) async fn live(s: &Session) -> Value {
    s.value("SELECT coalesce(jsonb_agg(jsonb_build_array(msg_id, message) ORDER BY msg_id), '[]') FROM vtq.q")
        .await
}

/// The archive: id, payload, and the newer copy where it was superseded.
pub(super) async fn archived(s: &Session) -> Value {
    s.value(
        "SELECT coalesce(jsonb_agg(jsonb_build_array(msg_id, message, superseded_by) ORDER BY msg_id), '[]')
        FROM vtq.q_archive",
    )
    .await
}

#[tokio::test]
async fn a_taken_key_skips_and_says_so() {
    let s = Session::with_queue("{}").await;

    assert_eq!(send(&s, 1, "").await, json!([1, "sent"]));
    assert_eq!(send(&s, 2, "").await, json!([1, "skipped"]));
    assert_eq!(send(&s, 3, ", on_conflict => 'skip'").await, json!([1, "skipped"]));

    // The plain send keeps its answer: the id that has the key.
    assert_eq!(s.value::<i64>("SELECT vtq.send('q', '4', unique_key => 'k')").await, 1);
    assert_eq!(live(&s).await, json!([[1, 1]]));
}

#[tokio::test]
async fn a_key_is_one_of_its_queue_and_other_keys_are_free() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.create_queue('r'); SELECT vtq.send('q', '1', unique_key => 'k')").await;

    let other = s.row("SELECT * FROM vtq.send_report('r', '1', unique_key => 'k')").await;
    let another = s.row("SELECT * FROM vtq.send_report('q', '1', unique_key => 'K')").await;
    let none = s.row("SELECT * FROM vtq.send_report('q', '1')").await;

    for answer in [other, another, none] {
        assert_eq!(answer["outcome"], "sent");
    }
}

#[tokio::test]
async fn error_names_the_key_and_its_holder_and_sends_nothing() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, "").await;

    let refusal = s.refusal("SELECT vtq.send('q', '2', unique_key => 'k', on_conflict => 'error')").await;

    assert_eq!(refusal, r#"VT007 unique_key "k" of queue "q" is taken by message 1"#);
    assert_eq!(live(&s).await, json!([[1, 1]]));
}

#[tokio::test]
async fn replace_gives_the_waiting_message_the_new_payload_in_its_old_place() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, ", headers => '{\"a\": 1}', visible_at => '2999-01-01'").await;
    let place = "SELECT ready_at, vt, enqueued_at, read_ct FROM vtq.q";
    let before = s.row(place).await;

    assert_eq!(
        send(&s, 2, ", headers => '{\"b\": 2}', on_conflict => 'replace'").await,
        json!([1, "replaced"])
    );

    assert_eq!(s.row(place).await, before);
    let row = s.row("SELECT message, headers FROM vtq.q").await;
    assert_eq!(row, json!({"message": 2, "headers": {"b": 2}}));
}

/// A peer replaced the row of a job that ran: its run ended with the old payload and deleted the new one with it.
#[tokio::test]
async fn a_message_in_flight_is_not_replaced_and_the_sender_is_told() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, "").await;
    s.read(1).await;

    assert_eq!(send(&s, 2, ", on_conflict => 'replace'").await, json!([1, "skipped"]));

    assert_eq!(live(&s).await, json!([[1, 1]]));
}

#[tokio::test]
async fn a_settled_message_frees_its_key_in_the_same_statement() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    let ends = [
        "SELECT vtq.ack('q', ARRAY[$], '{1}')",
        "SELECT vtq.fail('q', $, 1)",
        "SELECT vtq.dead_letter('q', $, 1)",
        "SELECT vtq.cancel('q', $)",
        "UPDATE vtq.q SET vt = ready_at + interval '1 microsecond'; SELECT vtq.sweep('q')",
    ];

    for (end, id) in ends.iter().zip(1_i64..) {
        assert_eq!(send(&s, 1, "").await, json!([id, "sent"]), "before {end}");
        assert_eq!(s.read(1).await, [id]);
        s.run(&end.replace('$', &id.to_string())).await;
        assert_eq!(s.count("vtq.q").await, 0, "{end}");
    }
}

/// Deleting the table's rows is the bluntest purge there is: no record of a key outlives its message.
#[tokio::test]
async fn a_purged_message_frees_its_key() {
    let s = Session::with_queue("{}").await;
    send(&s, 1, "").await;

    s.run("DELETE FROM vtq.q").await;

    assert_eq!(send(&s, 2, "").await, json!([2, "sent"]));
}

#[tokio::test]
async fn a_key_stays_taken_for_a_while_after_success() {
    for on_ack in ["archive", "delete"] {
        let s = Session::with_queue(&format!(r#"{{"on_ack": "{on_ack}"}}"#)).await;
        let window = ", unique_for => '1 h'";
        send(&s, 1, window).await;
        s.read(1).await;
        s.run("SELECT vtq.ack('q', '{1}', '{1}')").await;

        assert_eq!(send(&s, 2, window).await, json!([1, "skipped"]), "{on_ack}");
        assert_eq!(send(&s, 3, ", on_conflict => 'replace'").await, json!([1, "skipped"]));
        let refusal = s.refusal("SELECT vtq.send('q', '4', unique_key => 'k', on_conflict => 'error')").await;
        assert_eq!(refusal, r#"VT007 unique_key "k" of queue "q" is taken by message 1"#);
        let batch = s.rows("SELECT * FROM vtq.send_batch_report('q', '{5,6}', unique_keys => '{k,l}')").await;
        assert_eq!(batch[0]["outcome"], "skipped");
        assert_eq!(batch[1]["outcome"], "sent");

        s.run("UPDATE vtq._taken SET until = clock_timestamp()").await;
        assert_eq!(send(&s, 7, window).await[1], "sent");
    }
}

#[tokio::test]
async fn only_success_keeps_a_key_taken() {
    let s = Session::with_queue(r#"{"max_attempts": 1}"#).await;
    for end in ["vtq.fail('q', 1, 1)", "vtq.cancel('q', 2)"] {
        send(&s, 1, ", unique_for => '1 h'").await;
        s.read(1).await;
        s.run(&format!("SELECT {end}")).await;
    }

    assert_eq!(send(&s, 1, "").await, json!([3, "sent"]));
    assert_eq!(s.count("vtq._taken").await, 0);
}

#[tokio::test]
async fn maintenance_removes_what_is_past_and_a_dropped_queue_takes_its_keys_along() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send_batch('q', '{1,2}', unique_keys => '{k,l}', unique_for => '1 h')").await;
    s.read(2).await;
    s.run("SELECT vtq.ack('q', '{1,2}', '{1,1}')").await;
    s.run("UPDATE vtq._taken SET until = clock_timestamp() WHERE unique_key = 'k'").await;

    s.run("SELECT vtq.maintain('q')").await;
    assert_eq!(s.values::<String>("SELECT unique_key FROM vtq._taken").await, ["l"]);

    s.run("SELECT vtq.drop_queue('q')").await;
    assert_eq!(s.count("vtq._taken").await, 0);
}

/// Peers fail the whole batch for one duplicate, or drop elements without a word.
#[tokio::test]
async fn a_batch_says_of_each_element_what_became_of_it() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '0', unique_key => 'taken')").await;

    let report = s
        .rows(
            "SELECT * FROM vtq.send_batch_report('q', '{1,2,3,4,5,6}',
                unique_keys => ARRAY['a', NULL, 'taken', 'a', NULL, 'b'])",
        )
        .await;

    let sent: i64 = s.value("SELECT count(*) FROM vtq.q").await;
    assert_eq!(sent, 5);
    let told: Vec<Value> =
        report.as_array().unwrap().iter().map(|row| json!([row["place"], row["outcome"]])).collect();
    assert_eq!(
        json!(told),
        json!([[1, "sent"], [2, "sent"], [3, "skipped"], [4, "skipped"], [5, "sent"], [6, "sent"]])
    );
    assert_eq!((&report[2]["msg_id"], &report[3]["msg_id"]), (&json!(1), &report[0]["msg_id"]));
    for (place, payload) in [(0, 1), (1, 2), (4, 5), (5, 6)] {
        let sql = format!("SELECT message FROM vtq.q WHERE msg_id = {}", report[place]["msg_id"]);
        assert_eq!(s.row(&sql).await, json!({"message": payload}));
    }
}

#[tokio::test]
async fn a_batch_in_error_mode_is_sent_whole_or_not_at_all() {
    let s = Session::with_queue("{}").await;
    send(&s, 0, "").await;

    for (keys, place) in [("'{a,b,k}'", 3), ("'{a,k,b}'", 2)] {
        let sql =
            format!("SELECT vtq.send_batch('q', '{{1,2,3}}', unique_keys => {keys}, on_conflict => 'error')");
        let sentence = format!(r#"VT007 message {place}: unique_key "k" of queue "q" is taken by message 1"#);
        assert_eq!(s.refusal(&sql).await, sentence);
    }
    // Two elements with one key disagree just as well.
    let twice = "SELECT vtq.send_batch('q', '{1,2}', unique_keys => '{a,a}', on_conflict => 'error')";
    assert!(
        s.refusal(twice).await.starts_with(r#"VT007 message 2: unique_key "a" of queue "q" is taken by"#)
    );
    assert_eq!(live(&s).await, json!([[1, 0]]));
}

#[tokio::test]
async fn the_last_of_a_batch_replaces_the_first_with_its_key() {
    let s = Session::with_queue("{}").await;

    let ids = s
        .values::<i64>(
            "SELECT vtq.send_batch('q', '{1,2,3}', unique_keys => '{k,k,k}', on_conflict => 'replace')",
        )
        .await;

    assert_eq!(ids, [1, 1, 1]);
    assert_eq!(live(&s).await, json!([[1, 3]]));
}

#[tokio::test]
async fn a_hundred_thousand_keys_keep_their_order() {
    let s = Session::with_queue("{}").await;
    let batch = "SELECT place, msg_id, outcome FROM vtq.send_batch_report('q',
        ARRAY(SELECT to_jsonb(n) FROM generate_series(1, 100000) AS n),
        unique_keys => ARRAY(SELECT 'k' || n % 50000 FROM generate_series(1, 100000) AS n))";

    s.run(&format!("CREATE TEMP TABLE told AS {batch}")).await;

    let told = s
        .rows(
            "SELECT outcome, count(*), min(place), bool_and(m.message::integer = (place - 1) % 50000 + 1) AS placed
            FROM told JOIN vtq.q AS m USING (msg_id) GROUP BY outcome ORDER BY outcome",
        )
        .await;
    assert_eq!(
        told,
        json!([
            {"outcome": "sent", "count": 50_000, "min": 1, "placed": true},
            {"outcome": "skipped", "count": 50_000, "min": 50_001, "placed": true},
        ])
    );
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_in_words() {
    let s = Session::with_queue("{}").await;
    let needs = "it needs on_conflict replace and a delay";
    let none = "unique_until, unique_for, on_conflict and max_wait say something about a unique_key, and none is given";
    let cases = [
        ("unique_for => '1 h'", none.into()),
        (
            "unique_key => 'k', max_wait => '1 h'",
            format!("max_wait 01:00:00 says how far later sends may put a message off: {needs}"),
        ),
        (
            "unique_key => 'k', max_wait => '1 h', on_conflict => 'replace'",
            format!("max_wait 01:00:00 says how far later sends may put a message off: {needs}"),
        ),
        (
            "unique_key => 'k', max_wait => '1 h', delay => '1 min'",
            format!("max_wait 01:00:00 says how far later sends may put a message off: {needs}"),
        ),
        (
            "unique_key => 'k', max_wait => '1 min', delay => '1 h', on_conflict => 'replace'",
            "max_wait 00:01:00 is shorter than delay 01:00:00: the first send alone would pass it".into(),
        ),
        ("unique_key => ''", "unique_key is not allowed to be empty or longer than 1024 bytes".into()),
        (
            "unique_key => 'k', unique_until => 'read'",
            r#"unique_until "read" is not known: it must be done or started"#.into(),
        ),
        (
            "unique_key => 'k', on_conflict => 'ignore'",
            r#"on_conflict "ignore" is not known: it must be skip, replace or error"#.into(),
        ),
    ];

    for (arguments, sentence) in cases {
        let refusal = s.refusal(&format!("SELECT vtq.send('q', '1', {arguments})")).await;
        assert_eq!(refusal, format!("22023 {sentence}"), "{arguments}");
    }
    assert_eq!(s.count("vtq.q").await, 0);
}

/// A claim changes no indexed column, but for the messages that ask for it.
#[tokio::test]
async fn only_a_key_that_is_freed_at_the_start_costs_the_claim_an_index() {
    for (until, is_hot) in [("done", true), ("started", false)] {
        let s = Session::with_queue("{}").await;
        s.run(&format!(
            "SELECT vtq.send_batch('q', array_agg(to_jsonb(repeat('x', 200))), unique_keys => array_agg('k' || n),
                unique_until => '{until}')
            FROM generate_series(1, 100) AS n"
        ))
        .await;

        s.run("BEGIN; SELECT vtq.read('q', '1 h', 100)").await;
        let updates = s
            .row("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relid = 'vtq.q'::regclass")
            .await;
        s.run("COMMIT").await;

        assert_eq!(updates, json!({"n_tup_upd": 100, "n_tup_hot_upd": if is_hot { 100 } else { 0 }}));
    }
}

#[tokio::test]
async fn keyed_verbs_scan_no_table() {
    let s = Session::with_queue(r#"{"unlogged": true}"#).await;
    s.run(
        "ALTER TABLE vtq.q SET (autovacuum_enabled = false);
        INSERT INTO vtq.q (message, unique_key, unique_until, unique_for)
        SELECT '1', 'k' || n, 'started', '1 h' FROM generate_series(1, 20000) AS n",
    )
    .await;
    let verbs = [
        "vtq.send('q', '1', unique_key => 'k7')",
        "vtq.send('q', '1', unique_key => 'new')",
        "vtq.send('q', '2', unique_key => 'k8', on_conflict => 'replace', delay => '1 s')",
        "vtq.send_batch_report('q', '{1,2,3}', unique_keys => '{k1,k2,other}')",
        "vtq.read('q', qty => 5)",
        "vtq.ack('q', '{1}', '{1}')",
        "vtq.send('q', '1', unique_key => 'k1')",
        "vtq.fail('q', 2, 1, NULL, '1 h')",
        "vtq.send('q', '1', unique_key => 'k2', unique_until => 'started')",
        "vtq.release('q', '{3}', '{1}')",
        "vtq.dead_letter('q', 4, 1)",
        "vtq.redrive('q', 4)",
        "vtq.sweep('q')",
    ];

    let scans = "SELECT relname, seq_scan FROM pg_stat_xact_user_tables
        WHERE schemaname = 'vtq' AND relname IN ('q', 'q_dlq', 'q_attempts', '_taken') AND seq_scan > 0 ORDER BY 1";
    for round in ["statistics of an empty table", "statistics of its own"] {
        s.run("BEGIN").await;
        let before = s.rows(scans).await;
        for verb in verbs {
            s.run(&format!("SELECT * FROM {verb}")).await;
            assert_eq!(s.rows(scans).await, before, "{round}: {verb}");
        }
        s.run("ROLLBACK; ANALYZE vtq.q").await;
    }
}

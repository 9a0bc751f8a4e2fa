//! Groups and exclusive keys: what waits its turn, and who ends the wait.

use serde_json::json;

use super::session::Session;

/// Queue `q` with `options`, and messages of the groups or keys named.
async fn with_lanes(options: &str, argument: &str, keys: &str) -> Session {
    let s = Session::with_queue(options).await;
    s.run(&format!(
        "SELECT vtq.send_batch('q', array_agg(to_jsonb(n)), {argument} => '{keys}')
        FROM generate_series(1, cardinality('{keys}'::text[])) AS n"
    ))
    .await;
    s
}

async fn with_groups(keys: &str) -> Session {
    with_lanes("{}", "group_keys", keys).await
}

#[tokio::test]
async fn of_each_group_the_first_is_handed_out_and_the_others_wait() {
    let s = with_groups("{a,a,b,NULL,b,a}").await;

    assert_eq!(s.read(10).await, [4, 1, 3]);
    assert_eq!(s.read(10).await, Vec::<i64>::new());

    assert_eq!(s.values::<i64>("SELECT vtq.ack('q', '{1,3}', '{1,1}')").await, [1, 3]);
    assert_eq!(s.read(10).await, [2, 5]);
}

/// Elsewhere a freed lock lets a newer job run while the older one waits for its retry.
#[tokio::test]
async fn a_message_in_backoff_holds_its_group_and_only_its_group() {
    let s = with_groups("{a,a,b,b}").await;
    s.read(10).await;

    s.run("SELECT vtq.fail('q', 1, 1, '\"x\"', '1 h'); SELECT vtq.ack('q', '{3}', '{1}')").await;

    assert_eq!(s.read(10).await, [4]);
    s.run("SELECT vtq.run_now('q', 1)").await;
    assert_eq!(s.read(10).await, [1]);
}

/// In peers each look at a lock that is taken is a try: it counts as an attempt, and the next failure waits as long as if
/// the job had failed before. After enough of them the job dies without having run.
#[tokio::test]
async fn waiting_its_turn_does_not_move_the_backoff() {
    let options =
        r#"{"backoff": {"kind": "list", "delays": [60, 86400], "jitter": "none"}, "max_attempts": 3}"#;
    for argument in ["group_keys", "exclusive_keys"] {
        let s = with_lanes(options, argument, "{a,a}").await;
        s.read(1).await;
        for _ in 0..9 {
            assert_eq!(s.read(5).await, Vec::<i64>::new());
        }
        s.run("SELECT vtq.ack('q', '{1}', '{1}')").await;
        assert_eq!(s.read(5).await, [2]);

        let wait = s
            .value::<f64>(
                "SELECT extract(epoch FROM vt - clock_timestamp())::float8 FROM vtq.fail('q', 2, 1)",
            )
            .await;

        assert!((50.0..=60.0).contains(&wait), "{argument}: the wait after a first failure");
    }
}

#[tokio::test]
async fn waiting_its_turn_spends_no_attempt() {
    let s = with_groups("{a,a}").await;
    s.read(1).await;
    for _ in 0..3 {
        assert_eq!(s.read(5).await, Vec::<i64>::new());
    }

    s.run("SELECT vtq.ack('q', '{1}', '{1}')").await;

    let second = s.row("SELECT msg_id, read_ct, attempt FROM vtq.read('q')").await;
    assert_eq!(second, json!({"msg_id": 2, "read_ct": 1, "attempt": 1}));
}

#[tokio::test]
async fn every_end_of_the_head_lets_the_next_run() {
    let ends = [
        ("an ack", "SELECT vtq.ack('q', '{1}', '{1}')"),
        ("a last failure", "SELECT vtq.fail('q', 1, 1)"),
        ("a permanent failure", "SELECT vtq.dead_letter('q', 1, 1)"),
        ("a cancellation", "SELECT vtq.cancel('q', 1)"),
    ];
    for (end, sql) in ends {
        for (argument, on_ack) in [("group_keys", "archive"), ("exclusive_keys", "delete")] {
            let options = format!(r#"{{"max_attempts": 1, "on_ack": "{on_ack}"}}"#);
            let s = with_lanes(&options, argument, "{a,a}").await;
            assert_eq!(s.read(10).await, [1], "{end}");

            s.run(sql).await;

            assert_eq!(s.read(10).await, [2], "{end}, {argument}");
        }
    }
}

#[tokio::test]
async fn a_lapsed_lease_is_handed_out_again_before_the_next_of_its_group() {
    let s = with_groups("{a,a}").await;
    s.run("SELECT vtq.read('q', '1 ms')").await;
    s.run("SELECT pg_sleep(0.01)").await;

    assert_eq!(s.read(10).await, [1]);
}

#[tokio::test]
async fn a_dead_head_pauses_its_group_where_the_queue_says_so_until_it_is_redriven_or_purged() {
    let options = r#"{"max_attempts": 1, "group_on_dead": "pause"}"#;
    for way_out in ["SELECT vtq.redrive('q', 1)", "SELECT vtq.dlq_purge('q', 1)"] {
        let s = with_lanes(options, "group_keys", "{a,a,b}").await;
        assert_eq!(s.read(10).await, [1, 3]);
        s.run("SELECT vtq.fail('q', 1, 1)").await;
        s.run("SELECT vtq.send('q', '4', group_key => 'a')").await;
        assert_eq!(s.read(10).await, Vec::<i64>::new(), "{way_out}");

        s.run(way_out).await;

        if way_out.contains("redrive") {
            assert_eq!(s.read(10).await, [1]);
            s.run("SELECT vtq.ack('q', '{1}', '{2}')").await;
        }
        assert_eq!(s.read(10).await, [2], "{way_out}");
        s.run("SELECT vtq.ack('q', '{2}', '{1}')").await;
        assert_eq!(s.read(10).await, [4], "{way_out}");
    }
}

#[tokio::test]
async fn a_redriven_message_takes_the_place_behind_what_its_group_has_now() {
    let s = with_lanes(r#"{"max_attempts": 1}"#, "group_keys", "{a,a,a}").await;
    s.read(1).await;
    s.run("SELECT vtq.fail('q', 1, 1)").await;
    assert_eq!(s.read(10).await, [2]);

    s.run("SELECT vtq.redrive('q', 1); SELECT vtq.read('q'); SELECT vtq.ack('q', '{2}', '{1}')").await;

    assert_eq!(s.read(10).await, [3]);
    s.run("SELECT vtq.ack('q', '{3}', '{1}')").await;
    assert_eq!(s.read(10).await, [1]);
}

/// The one that commits late was sent first: its place is where the others have got to.
#[tokio::test]
async fn a_late_commit_is_neither_lost_nor_run_beside_its_group() {
    let s = Session::with_queue("{}").await;
    let late = s.another().await;
    late.run("BEGIN; SELECT vtq.send('q', '1', group_key => 'a')").await;
    s.run("SELECT vtq.send('q', '2', group_key => 'a'); SELECT vtq.send('q', '3', group_key => 'a')").await;
    assert_eq!(s.read(10).await, [2]);

    late.run("COMMIT").await;

    assert_eq!(s.read(10).await, Vec::<i64>::new());
    s.run("SELECT vtq.ack('q', '{2}', '{1}')").await;
    assert_eq!(s.read(10).await, [3]);
    s.run("SELECT vtq.ack('q', '{3}', '{1}')").await;
    assert_eq!(s.read(10).await, [1]);
}

/// The ack has looked for a successor before there was one to see; the admission must not take the group for busy.
#[tokio::test]
async fn a_message_that_arrives_while_its_head_is_being_acked_is_not_stranded() {
    for argument in ["group_key", "exclusive_key"] {
        let s = Session::with_queue("{}").await;
        s.run(&format!("SELECT vtq.send('q', '1', {argument} => 'a')")).await;
        assert_eq!(s.read(1).await, [1]);
        let acker = s.another().await;
        acker.run("BEGIN; SELECT vtq.ack('q', '{1}', '{1}')").await;

        s.run(&format!("SELECT vtq.send('q', '2', {argument} => 'a')")).await;
        assert_eq!(s.read(10).await, Vec::<i64>::new(), "{argument}: the ack has not committed");
        acker.run("COMMIT").await;

        assert_eq!(s.read(10).await, [2], "{argument}");
    }
}

#[tokio::test]
async fn an_admission_that_is_rolled_back_leaves_nothing_behind() {
    let s = with_groups("{a,a}").await;
    s.run("BEGIN; SELECT vtq.read('q', qty => 10); ROLLBACK").await;

    assert_eq!(s.read(10).await, [1]);
}

#[tokio::test]
async fn delayed_messages_of_a_group_do_not_hold_up_those_that_are_due() {
    let s = Session::with_queue("{}").await;
    s.run("SELECT vtq.send('q', '1', delay => '1 h', group_key => 'a'); SELECT vtq.send('q', '2', group_key => 'a')")
        .await;

    assert_eq!(s.read(10).await, [2]);
}

#[tokio::test]
async fn of_an_exclusive_key_as_many_run_as_the_queue_says() {
    let s = with_lanes(r#"{"exclusive_limit": 2}"#, "exclusive_keys", "{a,a,a,b,a}").await;

    assert_eq!(s.read(10).await, [1, 2, 4]);
    s.run("SELECT vtq.ack('q', '{2}', '{1}')").await;
    assert_eq!(s.read(10).await, [3]);
    assert_eq!(s.read(10).await, Vec::<i64>::new());
}

/// A message in backoff runs nothing, and so holds no slot; when it is due it waits for one like any other.
#[tokio::test]
async fn a_failed_message_gives_its_slot_away_and_comes_back_without_losing_an_attempt() {
    let s = with_lanes("{}", "exclusive_keys", "{a,a}").await;
    assert_eq!(s.read(10).await, [1]);

    s.run("SELECT vtq.fail('q', 1, 1, '\"x\"', '0')").await;

    assert_eq!(s.read(10).await, [2]);
    assert_eq!(s.read(10).await, Vec::<i64>::new());
    s.run("SELECT vtq.ack('q', '{2}', '{1}')").await;
    let again = s.row("SELECT msg_id, attempt FROM vtq.read('q')").await;
    assert_eq!(again, json!({"msg_id": 1, "attempt": 2}));
}

#[tokio::test]
async fn a_waiting_message_is_counted_and_explained() {
    let s = with_groups("{a,a}").await;
    s.read(10).await;

    let metrics = s.row("SELECT ready, in_flight, waiting FROM vtq.metrics('q')").await;
    assert_eq!(metrics, json!({"ready": 0, "in_flight": 1, "waiting": 1}));
    let why = s.row("SELECT e ->> 'state' AS state, e ->> 'why' AS why FROM vtq.explain('q', 2) AS e").await;
    assert_eq!(
        why,
        json!({"state": "waiting", "why": "it waits for its turn in group \"a\", behind message 1, which is in flight"})
    );
}

#[tokio::test]
async fn keys_that_make_no_sense_are_refused_in_words() {
    let s = Session::with_queue("{}").await;

    for (args, refusal) in [
        ("group_key => ''", "group_key is not allowed to be empty or longer than 1024 bytes"),
        (
            "group_key => 'a', exclusive_key => 'b'",
            "group_key and exclusive_key exclude each other: of a group one message runs at a time anyway",
        ),
        (
            "max_wait => '1 s'",
            "unique_until, unique_for, on_conflict and max_wait say something about a unique_key, and none is given",
        ),
    ] {
        let said = s.refusal(&format!("SELECT vtq.send('q', '1', {args})")).await;
        assert_eq!(said, format!("22023 {refusal}"));
    }
    let said = s.refusal("SELECT vtq.send_batch('q', '{1,2}', group_keys => '{a}')").await;
    assert_eq!(said, "22023 group_keys has 1 elements, but must have one for each of the 2 messages");
}

/// Queue `q` with so many messages of one group, none of which has been admitted.
async fn with_a_hot_group(count: i32) -> Session {
    let s = Session::with_queue("{}").await;
    s.run(&format!(
        "SELECT vtq.send_batch('q', array_agg(to_jsonb(n)), group_keys => array_agg('hot'::text))
        FROM generate_series(1, {count}) AS n"
    ))
    .await;
    s
}

#[tokio::test]
async fn a_hot_group_costs_the_others_nothing() {
    let s = with_a_hot_group(3000).await;
    s.run("SELECT vtq.send('q', '1', group_key => 'cold')").await;
    for _ in 0..20 {
        s.run("SELECT vtq.read('q', '1 h', 10)").await;
    }

    let heads = s.values::<i64>("SELECT msg_id FROM vtq.q WHERE read_ct > 0 ORDER BY 1").await;

    assert_eq!(heads, [1, 3001]);
    assert_eq!(s.count("vtq.q WHERE arrives_at IS NOT NULL").await, 0);
}

#[tokio::test]
async fn a_group_that_arrives_behind_a_huge_one_is_not_held_up() {
    let s = with_a_hot_group(20000).await;
    s.run("SELECT vtq.read('q', '1 h', 10)").await;
    s.run("SELECT vtq.send('q', '1', group_key => 'after'), vtq.send('q', '1', group_key => 'zero')").await;
    s.run("SELECT vtq.send('q', '1', group_key => 'a')").await;

    let read = s.values::<i64>("SELECT msg_id FROM vtq.read('q', '1 h', 10) ORDER BY 1").await;

    assert_eq!(read, [20001, 20002, 20003]);
    assert!(s.count("vtq.q WHERE arrives_at IS NOT NULL").await > 15_000);
}

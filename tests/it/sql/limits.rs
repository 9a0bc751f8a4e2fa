//! How many run at once, and how many in a length of time.

use serde_json::json;

use super::session::Session;

async fn with_limits(options: &str, count: i32) -> Session {
    let s = Session::with_queue(options).await;
    s.run(&format!(
        "SELECT vtq.send_batch('q', array_agg(to_jsonb(n))) FROM generate_series(1, {count}) AS n"
    ))
    .await;
    s
}

#[tokio::test]
async fn no_more_run_at_once_than_the_queue_allows() {
    let s = with_limits(r#"{"max_in_flight": 3}"#, 5).await;

    assert_eq!(s.read(2).await, [1, 2]);
    assert_eq!(s.read(10).await, [3]);
    assert_eq!(s.read(10).await, Vec::<i64>::new());
    s.run("SELECT vtq.ack('q', '{2}', '{1}')").await;
    assert_eq!(s.read(10).await, [4]);
}

#[tokio::test]
async fn a_lapsed_lease_is_a_free_slot() {
    let s = with_limits(r#"{"max_in_flight": 1}"#, 2).await;
    s.run("SELECT vtq.read('q', '1 ms')").await;
    s.run("SELECT pg_sleep(0.01)").await;

    assert_eq!(s.read(10).await, [1]);
}

/// What the other hands out is not there to be counted before it commits.
#[tokio::test]
async fn a_read_beside_an_uncommitted_one_is_turned_away_and_spends_nothing() {
    let s = with_limits(r#"{"max_in_flight": 2}"#, 3).await;
    let other = s.another().await;
    other.run("BEGIN; SELECT vtq.read('q')").await;

    assert_eq!(s.read(10).await, Vec::<i64>::new());
    other.run("COMMIT").await;

    assert_eq!(s.read(10).await, [2]);
    assert_eq!(s.value::<i32>("SELECT max(read_ct) FROM vtq.q").await, 1);
}

#[tokio::test]
async fn a_rate_hands_out_its_limit_and_then_waits_for_tokens() {
    let s = with_limits(r#"{"rate": {"limit": 3, "interval": "1 h"}}"#, 5).await;

    assert_eq!(s.read(2).await, [1, 2]);
    assert_eq!(s.read(10).await, [3]);
    assert_eq!(s.read(10).await, Vec::<i64>::new());
    // A third of the interval later there is one token.
    s.run("UPDATE vtq._rate SET used_until = used_until - interval '20 min'").await;
    assert_eq!(s.read(10).await, [4]);
    assert_eq!(s.read(10).await, Vec::<i64>::new());
}

#[tokio::test]
async fn a_sleeper_is_told_when_the_next_token_comes() {
    let s = with_limits(r#"{"rate": {"limit": 2, "interval": "1 h"}}"#, 3).await;
    s.run("SELECT vtq.read('q', '12 h', 10)").await;

    let due =
        s.row("SELECT due_in BETWEEN '29 min' AND '30 min' AS fits FROM vtq._doze('{q}', 'w', '1 h')").await;

    assert_eq!(due, json!({"fits": true}));
}

#[tokio::test]
async fn a_key_rate_spreads_the_messages_of_a_key_and_no_others() {
    let options = r#"{"key_rate": {"limit": 2, "interval": "1 h"}, "exclusive_limit": 10}"#;
    let s = Session::with_queue(options).await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3,4,5}', exclusive_keys => '{a,a,a,b,NULL}')").await;

    let mut now = s.read(10).await;
    now.sort_unstable();

    assert_eq!(now, [1, 2, 4, 5]);
    let third = s.row("SELECT e ->> 'state' AS state FROM vtq.explain('q', 3) AS e").await;
    assert_eq!(third, json!({"state": "delayed"}));
    let due = "SELECT ready_at - clock_timestamp() BETWEEN '29 min' AND '30 min' FROM vtq.q WHERE msg_id = 3";
    assert!(s.value::<bool>(due).await);
}

#[tokio::test]
async fn limits_that_make_no_sense_are_refused_in_words() {
    let s = Session::new().await;

    for (option, rule) in [
        (
            r#"{"max_in_flight": 0}"#,
            "max_in_flight is 0, but must be null or a whole number from 1 to 1000000",
        ),
        (
            r#"{"rate": {"limit": 3}}"#,
            "rate is {\"limit\": 3}, but must be null or {\"limit\": from 1 to 1000000",
        ),
        (r#"{"exclusive_limit": 1.5}"#, "exclusive_limit is 1.5, but must be a whole number from 1 to 10000"),
        (r#"{"group_on_dead": "stop"}"#, "group_on_dead is \"stop\", but must be \"continue\" or \"pause\""),
    ] {
        let said = s.refusal(&format!("SELECT vtq.create_queue('q', '{option}')")).await;
        assert!(said.starts_with(&format!("22023 option {rule}")), "{said}");
    }
}

//! Settings against each other: what is refused, what is doubtful, and what they amount to.

use serde_json::json;

use super::session::Session;

/// What lint says of queue `q`, as `severity setting: sentence`, without the notes.
async fn found(s: &Session, arguments: &str) -> Vec<String> {
    s.values(&format!(
        "SELECT l.severity || ' ' || l.setting || ': ' || l.says FROM vtq.lint('q'{arguments}) AS l WHERE l.severity <> 'note'"
    ))
    .await
}

#[tokio::test]
async fn contradictory_options_are_refused_in_a_sentence_that_names_both() {
    let s = Session::new().await;
    let cases = [
        (
            r#"{"backoff": {"base": 60, "max": 30}}"#,
            r#"22023 backoff "base" 60 is above "max" 30: the first delay would already be cut; raise max or lower base"#,
        ),
        (
            r#"{"max_attempts": 3, "backoff": {"kind": "list", "delays": [1, 2, 3, 4]}}"#,
            r#"22023 options of queue "q" contradict each other: backoff lists 4 delays and max_attempts is 3: there would be only 2 waits; shorten the list or raise max_attempts to 5"#,
        ),
    ];

    for (options, sentence) in cases {
        assert_eq!(s.refusal(&format!("SELECT vtq.create_queue('q', '{options}')")).await, sentence);
    }
    assert_eq!(s.count("vtq._queue").await, 0);
    s.run("SELECT vtq.create_queue('q')").await;
    for (options, sentence) in cases {
        assert_eq!(s.refusal(&format!("SELECT vtq.set_queue('q', '{options}')")).await, sentence);
    }
    assert_eq!(s.value::<String>("SELECT options::text FROM vtq._queue").await, "{}");
}

#[tokio::test]
async fn two_changes_that_contradict_each_other_are_refused_too() {
    let s = Session::with_queue(r#"{"backoff": {"kind": "list", "delays": [1, 2, 3, 4]}}"#).await;

    let refusal = s.refusal(r#"SELECT vtq.set_queue('q', '{"max_attempts": 3}')"#).await;

    assert!(refusal.contains("backoff lists 4 delays and max_attempts is 3"), "{refusal}");
    s.run(r#"SELECT vtq.set_queue('q', '{"max_attempts": 3, "backoff": null}')"#).await;
}

#[tokio::test]
async fn the_defaults_are_above_doubt() {
    let s = Session::with_queue("{}").await;

    assert_eq!(found(&s, "").await, Vec::<String>::new());
    let notes = s.values::<String>("SELECT says FROM vtq.lint('q')").await;
    assert!(notes[0].starts_with(
        "a message that always fails at once is dead after 00:01:15 of waits, from 00:01:03.75"
    ));
    assert!(notes[0].ends_with("and at the worst after 01:16:26.25, with 5 runs of 00:15:00"), "{notes:?}");
    assert!(
        notes[1].starts_with("timeout is 00:15:00 and the drain timeout of workers, by default, is 00:00:30")
    );
}

#[tokio::test]
async fn what_is_doubtful_is_a_warning_with_both_values() {
    let cases = [
        (
            r#"{"max_attempts": 1, "backoff": {"base": 60}}"#,
            "",
            r#"warning backoff: max_attempts is 1 and backoff is {"base": 60}"#,
        ),
        (r#"{"timeout": null}"#, "", "warning timeout: timeout is none and visibility_timeout is 00:00:30"),
        (
            r#"{"timeout": 60, "visibility_timeout": "2 h"}"#,
            "",
            "warning visibility_timeout: visibility_timeout is 02:00:00 and timeout is 00:01:00",
        ),
        (
            r#"{"visibility_timeout": 1.5}"#,
            "",
            "warning visibility_timeout: visibility_timeout is 00:00:01.5, so a heartbeat is due every 00:00:00.5",
        ),
        (
            r#"{"backoff": {"jitter": "none"}}"#,
            "",
            r#"warning backoff: backoff has jitter "none" and base 5"#,
        ),
        (r#"{"aging": "1 h"}"#, "", "warning aging: aging is 1 h and priorities is [0]"),
        (
            "{}",
            ", drain => '45 s'",
            "warning timeout: timeout is 00:15:00 and the drain timeout of the workers is 00:00:45",
        ),
        (
            r#"{"max_attempts": 9}"#,
            ", deadline => '10 min'",
            "warning max_attempts: max_attempts is 9, whose backoffs take at least 00:12:57.75, and the deadline is 00:10:00",
        ),
    ];

    for (options, arguments, sentence) in cases {
        let s = Session::with_queue(options).await;
        let found = found(&s, arguments).await;
        assert!(found.len() == 1 && found[0].starts_with(sentence), "{options}: {found:?}");
    }
}

#[tokio::test]
async fn a_contradiction_from_before_is_an_error_of_lint_and_stops_nothing() {
    let s = Session::with_queue("{}").await;
    s.run(r#"UPDATE vtq._queue SET options = '{"max_attempts": 2, "backoff": {"kind": "list", "delays": [1, 2]}}'"#).await;

    let found = found(&s, "").await;

    assert!(
        found.len() == 1
            && found[0].starts_with("error backoff: backoff lists 2 delays and max_attempts is 2"),
        "{found:?}"
    );
    s.send().await;
    assert_eq!(s.read(1).await, [1]);
}

#[tokio::test]
async fn the_way_to_the_dead_letters_is_summed_up_to_the_largest_budget() {
    let s =
        Session::with_queue(r#"{"max_attempts": 32767, "timeout": "1 min", "backoff": {"jitter": "none"}}"#)
            .await;

    let time = s
        .row(
            "SELECT extract(epoch FROM waits_expected)::bigint AS waits, extract(epoch FROM worst)::bigint AS worst
            FROM vtq.time_to_dlq('q')",
        )
        .await;

    // 5, 10, .. 160, and 300 for the rest of the 32766 waits.
    let waits = 315 + 300 * 32_760_i64;
    assert_eq!(time, json!({"waits": waits, "worst": waits + 60 * 32_767}));
    s.run(r#"SELECT vtq.set_queue('q', '{"max_attempts": 1, "timeout": null, "backoff": null}')"#).await;
    let time = s.row("SELECT waits_most, worst FROM vtq.time_to_dlq('q')").await;
    assert_eq!(time, json!({"waits_most": "00:00:00", "worst": null}));
}

#[tokio::test]
async fn a_simulation_shows_what_an_outage_brings_back() {
    let s = Session::new().await;

    let spread = s
        .rows(
            r#"SELECT failure, wait_least >= '8.5 s' AND wait_most <= '11.5 s' AND wait_p1 < wait_p50 AND wait_p50 < wait_p99 AS waits,
                since_p50 BETWEEN failure * interval '9.8 s' AND failure * interval '10.2 s' AS since,
                peak_1s BETWEEN 100000 / 4 / failure AND 50000 AS second, peak_100ms < peak_1s AS tenth
            FROM vtq.simulate_backoff('{"kind": "fixed", "base": 10}', 2, 2000, 100000)"#,
        )
        .await;
    let herd = s
        .row(
            r#"SELECT wait_p1 = wait_p99 AS same, peak_1s, peak_100ms
            FROM vtq.simulate_backoff('{"jitter": "none"}', 1, 100, 5000)"#,
        )
        .await;

    let right = |failure: i32| json!({"failure": failure, "waits": true, "since": true, "second": true, "tenth": true});
    assert_eq!(spread, json!([right(1), right(2)]));
    assert_eq!(herd, json!({"same": true, "peak_1s": 5000, "peak_100ms": 5000}), "all at once");
}

#[tokio::test]
async fn a_simulation_out_of_range_is_refused_with_the_rule() {
    let s = Session::new().await;
    let cases = [
        ("failures => 0", "failures 0 is not allowed: it must be from 1 to 1000"),
        ("runs => 0", "runs 0 is not allowed: it must be from 1 to 1000000"),
        ("failures => 100, runs => 1000000", "failures 100 and runs 1000000 are not allowed together"),
        ("messages => 0", "messages 0 is not allowed: it must be from 1 to 1000000000"),
    ];

    for (arguments, sentence) in cases {
        let refusal = s.refusal(&format!("SELECT vtq.simulate_backoff('{{}}', {arguments})")).await;
        assert!(refusal.starts_with(&format!("22023 {sentence}")), "{refusal}");
    }
}

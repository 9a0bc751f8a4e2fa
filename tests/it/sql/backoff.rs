//! The backoff as a function: bounds over many samples, caps, the far end of every range.

use serde_json::json;

use super::session::{Session, seed};

/// The delays after the first ten failures, in seconds.
async fn nominal(s: &Session, policy: &str) -> Vec<f64> {
    s.values(&format!(
        "SELECT extract(epoch FROM vtq.backoff('{policy}', n))::float8 FROM generate_series(1, 10) AS n"
    ))
    .await
}

#[tokio::test]
async fn each_kind_has_its_curve() {
    let s = Session::new().await;
    let cases = [
        (r#"{"jitter": 0}"#, [5, 10, 20, 40, 80, 160, 300, 300, 300, 300]),
        (r#"{"jitter": "none", "base": 1, "max": 100}"#, [1, 2, 4, 8, 16, 32, 64, 100, 100, 100]),
        (r#"{"kind": "linear", "jitter": 0, "base": 7, "max": 30}"#, [7, 14, 21, 28, 30, 30, 30, 30, 30, 30]),
        (r#"{"kind": "fixed", "jitter": 0, "base": 9}"#, [9; 10]),
        (
            r#"{"kind": "list", "jitter": 0, "delays": [3, 0, 900]}"#,
            [3, 0, 900, 900, 900, 900, 900, 900, 900, 900],
        ),
        (r#"{"kind": "list", "jitter": 0, "delays": [1]}"#, [1; 10]),
    ];

    for (policy, expected) in cases {
        assert_eq!(nominal(&s, policy).await, expected.map(f64::from), "{policy}");
    }
}

#[tokio::test]
async fn a_missing_policy_is_the_default() {
    let s = Session::new().await;

    for policy in ["NULL", "'{}'", r#"'{"base": 5}'"#] {
        let at_middle = format!("SELECT extract(epoch FROM vtq.backoff({policy}, 2, 0.5))::float8");
        assert_eq!(s.value::<f64>(&at_middle).await, 10.0, "{policy}");
    }
}

#[tokio::test]
async fn jitter_fills_its_range_and_does_not_leave_it() {
    let s = Session::new().await;
    let seed = seed(&s).await;
    let cases = [
        (r#"{"kind": "fixed", "base": 100, "jitter": 0.15}"#, 85.0, 115.0),
        (r#"{"kind": "fixed", "base": 100, "jitter": 1}"#, 0.0, 200.0),
        (r#"{"kind": "fixed", "base": 100, "jitter": "equal"}"#, 50.0, 100.0),
        (r#"{"kind": "fixed", "base": 100, "jitter": "full"}"#, 0.0, 100.0),
        (r#"{"kind": "list", "delays": [100], "jitter": 0.5}"#, 50.0, 150.0),
        (r#"{"kind": "linear", "base": 100, "jitter": 0.2}"#, 80.0, 120.0),
        (r#"{"kind": "exponential", "base": 100, "jitter": 0.2}"#, 80.0, 120.0),
        (r#"{"kind": "exponential", "base": 100, "max": 110, "jitter": 0.2}"#, 80.0, 110.0),
        (r#"{"kind": "linear", "base": 100, "max": 100, "jitter": "equal"}"#, 50.0, 100.0),
    ];

    s.run(&format!("SELECT setseed({seed})")).await;
    for (policy, lowest, highest) in cases {
        let sql = format!(
            "SELECT min(b.s) AS low, max(b.s) AS high, avg(b.s) AS mean FROM (
                SELECT extract(epoch FROM vtq.backoff('{policy}', 1))::float8 AS s FROM generate_series(1, 2000)
            ) AS b"
        );
        let row = s.client.query_one(&sql, &[]).await.unwrap();
        let (low, high, mean): (f64, f64, f64) = (row.get(0), row.get(1), row.get(2));
        let margin = (highest - lowest) / 20.0;
        assert!(low >= lowest && low < lowest + margin, "{policy}: from {low}");
        assert!(high <= highest && high > highest - margin, "{policy}: to {high}");
        let middle = f64::midpoint(lowest, highest);
        assert!((mean - middle).abs() < margin, "{policy}: {mean} on average");
    }
}

#[tokio::test]
async fn five_thousand_that_fail_together_do_not_come_back_together() {
    let s = Session::new().await;
    let seed = seed(&s).await;

    s.run(&format!("SELECT setseed({seed})")).await;
    let fullest: i64 = s
        .value(
            "SELECT max(bin.ct) FROM (
                SELECT count(*) AS ct
                FROM (
                    SELECT floor(extract(epoch FROM vtq.backoff('{}', 4)) * 10) AS place
                    FROM generate_series(1, 5000)
                ) AS b
                GROUP BY place
            ) AS bin",
        )
        .await;

    assert!(fullest < 250, "{fullest} of 5000 in one tenth of a second");
}

/// Cutting the jitter off at the cap would put half of all messages on one instant: that of the longest wait.
#[tokio::test]
async fn at_the_cap_they_do_not_come_back_together_either() {
    let s = Session::new().await;
    let seed = seed(&s).await;

    s.run(&format!("SELECT setseed({seed})")).await;
    for attempt in [7, 60, i32::MAX] {
        let row = s
            .client
            .query_one(
                "SELECT max(bin.ct), min(bin.least) >= '255 s', max(bin.most) <= '300 s' FROM (
                    SELECT count(*) AS ct, min(wait) AS least, max(wait) AS most
                    FROM (SELECT vtq.backoff('{}', $1) AS wait FROM generate_series(1, 5000)) AS b
                    GROUP BY floor(extract(epoch FROM wait) * 10)
                ) AS bin",
                &[&attempt],
            )
            .await
            .unwrap();
        let (fullest, is_above, is_below): (i64, bool, bool) = (row.get(0), row.get(1), row.get(2));
        assert!(
            fullest < 250 && is_above && is_below,
            "attempt {attempt}: {fullest} of 5000 in a tenth of a second"
        );
    }
}

#[tokio::test]
async fn the_cap_holds_after_jitter_at_any_attempt() {
    let s = Session::new().await;
    let attempts = "ARRAY[1, 5, 7, 8, 31, 32, 60, 62, 63, 64, 1023, 1024, 32767, 2147483647]";

    for kind in ["exponential", "linear"] {
        for jitter in ["0.15", "1", "\"equal\"", "\"full\"", "\"none\""] {
            let sql = format!(
                r#"SELECT max(vtq.backoff('{{"kind": "{kind}", "max": 300, "jitter": {jitter}}}', a, j)) <= '300 s'
                FROM unnest({attempts}) AS a CROSS JOIN unnest(ARRAY[NULL, 0, 0.5, 0.999999, 1]) AS j"#
            );
            assert!(s.value::<bool>(&sql).await, "{kind} with jitter {jitter}");
        }
    }
}

#[tokio::test]
async fn no_attempt_overflows_the_widest_policies() {
    let s = Session::new().await;
    let policies = [
        r#"{"base": 31536000, "max": 31536000, "jitter": 1}"#,
        r#"{"kind": "linear", "base": 31536000, "max": 31536000, "jitter": 1}"#,
        r#"{"kind": "fixed", "base": 31536000, "jitter": 1}"#,
        r#"{"kind": "list", "delays": [31536000], "jitter": 1}"#,
        r#"{"base": 0.001, "max": 31536000, "jitter": "none"}"#,
    ];

    for policy in policies {
        for attempt in [1, 60, 1000, i32::MAX] {
            let sql = format!("SELECT vtq.backoff('{policy}', {attempt}, 1) BETWEEN '0' AND '731 days'");
            assert!(s.value::<bool>(&sql).await, "{policy} at {attempt}");
        }
    }
}

#[tokio::test]
async fn an_attempt_begins_at_1() {
    let s = Session::new().await;

    for attempt in ["0", "-1", "-2147483648", "NULL"] {
        assert_eq!(
            s.refusal(&format!("SELECT vtq.backoff('{{}}', {attempt})")).await,
            format!("22023 attempt {} is not allowed: the first attempt is 1", attempt.to_lowercase())
        );
    }
}

#[tokio::test]
async fn a_source_of_jitter_is_from_0_to_1() {
    let s = Session::new().await;

    for source in ["-0.1", "1.1", "NaN", "Infinity", "-Infinity", "1e308"] {
        let refusal = s.refusal(&format!("SELECT vtq.backoff('{{}}', 1, '{source}')")).await;
        assert!(refusal.starts_with("22023 jitter_source "), "{refusal}");
        assert!(refusal.ends_with(" is not allowed: it must be from 0 to 1"), "{refusal}");
    }
}

#[tokio::test]
async fn a_bad_policy_is_refused_with_its_key_its_value_and_the_rule() {
    let s = Session::new().await;
    let number = "a number from 0.001 to 31536000";
    let kinds = "one of exponential, fixed, linear, list";
    let jitters = "a fraction from 0 to 1, or one of none, equal, full";
    let delays = "1 to 1000 numbers of seconds, each from 0 to 31536000";
    let keys = "absent; the keys of a backoff are kind, base, max, jitter, delays, on_deadline";
    let cases = [
        ("kind", r#""sometimes""#, kinds),
        ("kind", "1", kinds),
        ("kind", "null", kinds),
        ("base", "0", number),
        ("base", "-1", number),
        ("base", "31536001", number),
        ("base", r#""5""#, number),
        ("base", "null", number),
        ("base", "1e400", number),
        ("max", "0", number),
        ("max", "true", number),
        ("jitter", "-0.1", jitters),
        ("jitter", "1.1", jitters),
        ("jitter", r#""half""#, jitters),
        ("jitter", "null", jitters),
        ("delays", "[]", delays),
        ("delays", "5", delays),
        ("delays", "[1, -1]", delays),
        ("delays", r#"["1"]"#, delays),
        ("delays", "[[1]]", delays),
        ("delays", "[null]", delays),
        ("delays", "[31536001]", delays),
        ("bases", "1", keys),
        ("", "1", keys),
    ];

    for (key, value, rule) in cases {
        let refusal = s.refusal(&format!(r#"SELECT vtq.backoff('{{"{key}": {value}}}', 1)"#)).await;
        let shown = if value == "1e400" { format!("1{}", "0".repeat(79)) } else { value.to_owned() };
        assert_eq!(refusal, format!(r#"22023 backoff key "{key}" is {shown}, but must be {rule}"#));
    }
}

#[tokio::test]
async fn parts_of_a_policy_must_fit_each_other() {
    let s = Session::new().await;
    let above = "the first delay would already be cut; raise max or lower base";

    assert_eq!(
        s.refusal(r#"SELECT vtq.backoff('{"kind": "list"}', 1)"#).await,
        r#"22023 backoff kind "list" needs "delays": the seconds before each further run"#
    );
    assert_eq!(
        s.refusal(r#"SELECT vtq.backoff('{"base": 301}', 1)"#).await,
        format!(r#"22023 backoff "base" 301 is above "max" 300: {above}"#)
    );
    assert_eq!(
        s.refusal(r#"SELECT vtq.create_queue('q', '{"backoff": {"kind": "linear", "max": 4}}')"#).await,
        format!(r#"22023 backoff "base" 5 is above "max" 4: {above}"#)
    );
    for policy in ["5", "[]", "null", r#""exponential""#] {
        let refusal = s.refusal(&format!("SELECT vtq.backoff('{policy}', 1)")).await;
        assert!(
            refusal.starts_with(&format!("22023 backoff {policy} is not allowed: give an object")),
            "{refusal}"
        );
    }
}

#[tokio::test]
async fn a_policy_that_needs_no_base_may_have_any_max() {
    let s = Session::new().await;

    let seconds = s
        .rows(
            r#"SELECT extract(epoch FROM b)::integer AS s
            FROM vtq.backoff('{"kind": "list", "delays": [9], "max": 1, "jitter": 0}', 1) AS b"#,
        )
        .await;

    assert_eq!(seconds, json!([{"s": 9}]));
}

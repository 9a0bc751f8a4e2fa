//! Odd delays, instants and intervals: each has a stated meaning or an own refusal.

use serde_json::json;

use super::session::Session;

/// Lengths that no verb takes, as interval literals.
const ABSURD: [&str; 9] = [
    "-1 microsecond",
    "-1 s",
    "-1 day",
    "-178000000 years",
    "178000000 years",
    "36501 days",
    "1 mon -31 days",
    // PostgreSQL compares a year as 360 days and adds it as 365.25: by comparison this one is zero.
    "-1 year 360 days",
    "-1 year 361 days",
];

/// [`ABSURD`], and the infinities where the server has them.
async fn absurd(s: &Session) -> Vec<&'static str> {
    let infinite: &[&str] = if s.major().await >= 17 { &["infinity", "-infinity"] } else { &[] };
    [&ABSURD, infinite].concat()
}

#[tokio::test]
async fn no_absurd_length_is_taken_anywhere() {
    let s = Session::with_queue("{}").await;
    s.send().await;
    s.read(1).await;
    let calls = [
        ("delay", "SELECT vtq.send('q', '{}', delay => $)"),
        ("delay", "SELECT vtq.send_batch('q', '{1}', delay => $)"),
        ("delay", "SELECT vtq.defer('q', 1, 1, $)"),
        ("delay", "SELECT vtq.redrive('q', 1, $)"),
        ("retry_after", "SELECT vtq.fail('q', 1, 1, NULL, $)"),
        ("visibility_timeout", "SELECT vtq.read('q', $)"),
        ("visibility_timeout", "SELECT vtq.extend('q', '{1}', '{1}', $)"),
        ("older_than", "SELECT vtq.dlq_purge('q', older_than => $)"),
        ("delay", "SELECT vtq.schedule_add('s', '0 * * * *', 'q', '1', delay => $)"),
        ("grace", "SELECT vtq.schedule_add('s', '0 * * * *', 'q', '1', grace => $)"),
        ("expires_in", "SELECT vtq.schedule_add('s', '0 * * * *', 'q', '1', expires_in => $)"),
    ];

    for length in absurd(&s).await {
        for (argument, call) in calls {
            let call = call.replace('$', &format!("'{length}'::interval"));
            let refusal = s.refusal(&call).await;
            assert!(refusal.starts_with(&format!("22023 {argument} ")), "{call}: {refusal}");
            assert!(refusal.contains(" is not allowed: it must be from "), "{call}: {refusal}");
        }
    }
    let untouched = s.row("SELECT read_ct, refunded_ct, vt > ready_at AS held FROM vtq.q").await;
    assert_eq!(untouched, json!({"read_ct": 1, "refunded_ct": 0, "held": true}));
}

#[tokio::test]
async fn a_delay_counts_to_the_microsecond() {
    let s = Session::with_queue("{}").await;
    let delays = ["0", "1 microsecond", "0.1 s", "2147483647 s", "36500 days", "1 month", "1 year -360 days"];

    for delay in delays {
        s.run(&format!("SELECT vtq.send('q', '\"{delay}\"', delay => '{delay}')")).await;
    }

    let sql = "
        SELECT message #>> '{}' AS delay FROM vtq.q
        WHERE ready_at - enqueued_at <> make_interval(secs => extract(epoch FROM (message #>> '{}')::interval)::float8)
            OR vt <> ready_at";
    assert_eq!(s.rows(sql).await, json!([]));
    assert_eq!(s.count("vtq.q").await, delays.len() as i64);
}

#[tokio::test]
async fn a_day_is_24_hours_in_every_time_zone() {
    let s = Session::with_queue(r#"{"max_attempts": 1000}"#).await;
    // Wherever the year stands, some of these lengths end on the other side of a change of the clocks.
    let days = "generate_series(30, 360, 30)";
    for zone in ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"] {
        s.run(&format!("SET timezone = '{zone}'")).await;

        let sent = format!(
            "SELECT count(vtq.send('q', to_jsonb(d), delay => make_interval(days => d))) FROM {days} AS d"
        );
        assert_eq!(s.value::<i64>(&sent).await, 12);

        let wrong = "
            SELECT message FROM vtq.q
            WHERE extract(epoch FROM ready_at) - extract(epoch FROM enqueued_at) <> 86400 * message::integer";
        assert_eq!(s.rows(wrong).await, json!([]), "{zone}");
        s.run("DELETE FROM vtq.q").await;
    }
}

#[tokio::test]
async fn the_wait_of_a_failure_is_24_hours_a_day_too() {
    let s = Session::with_queue(r#"{"max_attempts": 1000}"#).await;
    s.run("SET timezone = 'America/New_York'").await;
    let sends = "SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 24)";
    s.run(sends).await;
    s.run("SELECT vtq.read('q', qty => 24)").await;

    let failed = "
        SELECT count(*) FROM generate_series(1, 12) AS id
        CROSS JOIN LATERAL vtq.fail('q', id, 1, NULL, make_interval(days => 30 * id)) AS f
        WHERE abs(extract(epoch FROM f.vt) - extract(epoch FROM clock_timestamp()) - 30 * 86400 * id) < 60";
    let deferred = "
        SELECT count(*) FROM generate_series(13, 24) AS id
        CROSS JOIN LATERAL vtq.defer('q', id, 1, make_interval(days => 30 * (id - 12))) AS f
        WHERE abs(extract(epoch FROM f.vt) - extract(epoch FROM clock_timestamp()) - 30 * 86400 * (id - 12)) < 60";

    assert_eq!(s.value::<i64>(failed).await, 12);
    assert_eq!(s.value::<i64>(deferred).await, 12);
}

#[tokio::test]
async fn a_delay_counts_from_the_call_and_not_from_begin() {
    let s = Session::with_queue("{}").await;

    s.run("BEGIN").await;
    let before: String = s.value("SELECT clock_timestamp()::text").await;
    let begun: bool = s.value(&format!("SELECT now() < '{before}'")).await;
    s.send().await;
    s.run("COMMIT").await;

    assert!(begun);
    let sql = format!("SELECT enqueued_at >= '{before}' AND ready_at = enqueued_at FROM vtq.q");
    assert!(s.value::<bool>(&sql).await);
}

#[tokio::test]
async fn absurd_instants_are_refused() {
    let s = Session::with_queue("{}").await;
    let instants = ["infinity", "-infinity", "294276-12-31", "10000-01-01", "4713-01-01 BC", "0001-12-31 BC"];

    for instant in instants {
        for argument in ["visible_at", "expires_at"] {
            let call = format!("SELECT vtq.send('q', '{{}}', {argument} => '{instant}')");
            let refusal = s.refusal(&call).await;
            assert!(refusal.starts_with(&format!("22023 {argument} ")), "{refusal}");
            assert!(refusal.ends_with("must be a finite instant from the year 1 to 9999"), "{refusal}");
        }
    }
    assert_eq!(s.count("vtq.q").await, 0);
}

#[tokio::test]
async fn a_past_instant_means_now_and_jumps_no_line() {
    let s = Session::with_queue("{}").await;
    let first = s.send().await;

    let second: i64 = s.value("SELECT vtq.send('q', '{}', visible_at => '2001-01-01')").await;

    assert!(s.value::<bool>("SELECT bool_and(ready_at = enqueued_at) FROM vtq.q").await);
    assert_eq!(s.read(2).await, [first, second]);
}

#[tokio::test]
async fn a_coming_instant_is_kept_as_it_is() {
    let s = Session::with_queue("{}").await;

    s.run("SELECT vtq.send('q', '{}', visible_at => '9999-12-30 12:00+00')").await;

    assert!(s.value::<bool>("SELECT ready_at = '9999-12-30 12:00+00' AND vt = ready_at FROM vtq.q").await);
    assert_eq!(s.read(1).await, Vec::<i64>::new());
}

#[tokio::test]
async fn a_length_and_an_instant_exclude_each_other() {
    let s = Session::with_queue("{}").await;

    let refusal = s.refusal("SELECT vtq.send('q', '{}', delay => '1 s', visible_at => now())").await;

    assert!(refusal.starts_with("22023 delay 00:00:01 and visible_at "), "{refusal}");
    assert!(refusal.ends_with("exclude each other: give a length or an instant"), "{refusal}");
}

#[tokio::test]
async fn a_message_that_would_expire_before_it_is_due_is_refused() {
    let s = Session::with_queue("{}").await;

    for rest in [
        "expires_at => now() - interval '1 s'",
        "expires_at => now() + interval '1 min', delay => '1 h'",
        "expires_at => '2100-01-01', visible_at => '2100-01-01'",
    ] {
        let refusal = s.refusal(&format!("SELECT vtq.send('q', '{{}}', {rest})")).await;
        assert!(refusal.starts_with("22023 expires_at "), "{rest}: {refusal}");
        assert!(refusal.ends_with("when the message is due: it could never run"), "{rest}: {refusal}");
    }
}

#[tokio::test]
async fn a_visibility_timeout_is_from_a_millisecond_to_twelve_hours() {
    let s = Session::with_queue("{}").await;
    s.send().await;

    for length in ["0", "-5 s", "999 microseconds", "12 h 1 microsecond", "1 day", "-1 year 360 days 1 hour"]
    {
        for call in [format!("read('q', '{length}')"), format!("extend('q', '{{1}}', '{{0}}', '{length}')")] {
            let refusal = s.refusal(&format!("SELECT vtq.{call}")).await;
            assert!(refusal.ends_with("it must be from 00:00:00.001 to 12:00:00"), "{call}: {refusal}");
        }
    }
    for length in ["1 ms", "12 h"] {
        let sql = format!(
            "SELECT vt - last_read_at FROM vtq.read('q', '{length}') AS r (a,b,c,d,e,last_read_at,vt)"
        );
        let kept: bool = s.value(&format!("SELECT ({sql}) = interval '{length}'")).await;
        assert!(kept, "{length}");
        s.run("SELECT vtq.release('q', '{1}', ARRAY[read_ct]) FROM vtq.q").await;
    }
}

#[tokio::test]
async fn without_a_visibility_timeout_the_queues_holds() {
    let s = Session::with_queue(r#"{"visibility_timeout": "90 s"}"#).await;
    s.send().await;

    assert!(s.value::<bool>("SELECT r.vt - r.last_read_at = '90 s' FROM vtq.read('q') AS r").await);

    let held = "SELECT vtq.extend('q', '{1}', '{1}')";
    assert_eq!(s.values::<i64>(held).await, [1]);
    assert!(s.value::<bool>("SELECT vt - last_read_at BETWEEN '90 s' AND '100 s' FROM vtq.q").await);
}

#[tokio::test]
async fn lengths_in_options_are_checked_at_the_door() {
    let s = Session::new().await;
    let options = [
        "visibility_timeout",
        "timeout",
        "archive_retention",
        "attempts_retention",
        "dlq_retention",
        "aging",
    ];
    let mut values = vec![
        r#""-1 s""#,
        "-1",
        "0",
        r#""0""#,
        "1e300",
        "1e400",
        r#""abc""#,
        r#""""#,
        "true",
        "[]",
        "{}",
        "[1]",
        r#""178000000 years""#,
        r#""-1 year 360 days""#,
        r#""1 year -360 days -5 days -6 hours""#,
    ];
    if s.major().await >= 17 {
        values.extend([r#""infinity""#, r#""-infinity""#]);
    }

    for option in options {
        for value in &values {
            let call = format!(r#"SELECT vtq.create_queue('q', '{{"{option}": {value}}}')"#);
            let refusal = s.refusal(&call).await;
            assert!(refusal.starts_with(&format!("22023 {option} ")), "{call}: {refusal}");
        }
    }
    assert_eq!(s.count("vtq._queue").await, 0);
}

#[tokio::test]
async fn a_pause_ends_in_the_future_or_never() {
    let s = Session::with_queue("{}").await;

    for until in ["-infinity", "2001-01-01"] {
        let refusal = s.refusal(&format!("SELECT vtq.pause('q', until => '{until}')")).await;
        assert!(refusal.ends_with("it must lie in the future"), "{refusal}");
    }
    let refusal = s.refusal("SELECT vtq.pause('q', until => NULL)").await;
    assert_eq!(refusal, "22023 until null is not allowed: it must lie in the future");
    assert!(s.value::<bool>("SELECT vtq.pause('q', until => 'infinity')").await);
}

#[tokio::test]
async fn a_deferral_needs_a_length() {
    let s = Session::with_queue("{}").await;
    s.send().await;
    s.read(1).await;

    assert_eq!(
        s.refusal("SELECT vtq.defer('q', 1, 1, NULL)").await,
        "22023 delay is null: say how long to defer"
    );
}

#[tokio::test]
async fn a_row_due_at_infinity_stops_neither_readers_nor_metrics() {
    let s = Session::with_queue("{}").await;
    s.run("INSERT INTO vtq.q (message, ready_at, vt) VALUES ('1', '-infinity', '-infinity')").await;
    s.run("INSERT INTO vtq.q (message, ready_at, vt) VALUES ('2', 'infinity', 'infinity')").await;
    s.run("INSERT INTO vtq.q (message, ready_at) VALUES ('3', '-infinity')").await;
    s.send().await;

    let metrics = s.row("SELECT ready, waiting, error FROM vtq.metrics_all()").await;
    assert_eq!(metrics, json!({"ready": 3, "waiting": 1, "error": null}));
    let mut read = s.read(9).await;
    read.sort_unstable();
    assert_eq!(read, [1, 3, 4]);
}

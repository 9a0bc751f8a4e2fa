//! `vtq bench`: that its numbers add up, and that it leaves nothing behind and nobody's messages touched.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use vtq_tests::wait_until;

use crate::support::Cli;

const PATIENCE: Duration = Duration::from_secs(60);

fn count(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("{key} is no count: {report:#}"))
}

/// How many queues there are, and how many tables of queues.
async fn remains(cli: &Cli) -> String {
    cli.sql(
        "SELECT (SELECT count(*) FROM vtq._queue) || ' ' || count(*)
         FROM pg_class WHERE relnamespace = 'vtq'::regnamespace AND relname LIKE 'bench%'",
    )
    .await
}

#[tokio::test]
async fn a_run_adds_up_and_leaves_nothing() {
    let cli = Cli::with_queues(&[]).await;

    let report = cli
        .run(&["bench", "--duration", "1s", "--rate", "300", "--batch", "10", "--backlog", "50", "--json"])
        .json();

    assert!(count(&report, "sent") > 0, "{report:#}");
    assert_eq!(count(&report, "handled"), count(&report, "sent") + 50, "{report:#}");
    for key in ["left", "delayed", "dead", "foreign"] {
        assert_eq!(count(&report, key), 0, "{key}: {report:#}");
    }
    assert_eq!(report["latency"]["count"], report["sent"], "the backlog has no latency: {report:#}");
    assert!(count(&report["send"], "count") > 0, "{report:#}");
    let quantiles =
        ["p50_us", "p90_us", "p99_us", "p999_us", "max_us"].map(|key| count(&report["latency"], key));
    assert!(quantiles.is_sorted(), "{report:#}");
    for key in [
        "wal_bytes",
        "dead_rows_max",
        "table_bytes_max",
        "total_bytes_max",
        "compactions",
        "notifications",
        "elapsed_ms",
    ] {
        count(&report, key);
    }
    assert!(count(&report, "wal_bytes") > 50 * 200, "{report:#}");
    for key in ["sent_per_second", "handled_per_second", "wal_bytes_per_message"] {
        assert!(report[key].as_f64().unwrap() > 0.0, "{key}: {report:#}");
    }
    assert_eq!(report["settings"]["on_ack"], "archive");
    assert_eq!((&report["interrupted"], &report["snapshot_held"]), (&json!(false), &Value::Null));
    assert!(!report["series"].as_array().unwrap().is_empty());
    assert_eq!(remains(&cli).await, "0 0");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_cpu_of_a_server_on_this_host_is_seen() {
    let cli = Cli::with_queues(&[]).await;

    let report = cli.run(&["bench", "--duration", "1s", "--json"]).json();

    for key in ["backend_cpu_us_per_message", "server_cpu_us_per_message", "client_cpu_us_per_message"] {
        // A server of somebody else's may be anywhere.
        let is_elsewhere = std::env::var("VTQ_TEST_DATABASE_URL").is_ok_and(|url| !url.is_empty());
        assert!(is_elsewhere || report[key].as_f64().is_some_and(|cpu| cpu > 0.0), "{key}: {report:#}");
    }
}

#[tokio::test]
async fn what_workers_do_not_manage_is_counted_as_left() {
    let cli = Cli::with_queues(&[]).await;
    let slow =
        ["--handler-time", "100ms", "--concurrency", "1", "--drain-timeout", "0", "--on-ack", "delete"];

    let ran = cli.run(&[&["bench", "--duration", "300ms", "--json"], &slow[..]].concat());

    ran.expect(0);
    let report = ran.json();
    assert!(count(&report, "left") > 0, "{report:#}");
    assert_eq!(count(&report, "sent"), count(&report, "handled") + count(&report, "left"), "{report:#}");
    assert!(ran.stderr().contains("messages were left"), "{}", ran.stderr());
    assert_eq!(report["settings"]["on_ack"], "delete");
    assert_eq!(remains(&cli).await, "0 0");
}

#[tokio::test]
async fn a_backlog_alone_is_handled_and_the_run_ends_with_it() {
    let cli = Cli::with_queues(&[]).await;

    let text = cli.run(&["bench", "--producers", "0", "--backlog", "500", "--duration", "10m"]).done();

    let handled = text.lines().find(|line| line.starts_with("handled")).unwrap();
    assert_eq!(handled.split_whitespace().nth(1), Some("500"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("sent")), "{text}");
}

#[tokio::test]
async fn sending_alone_leaves_all_that_was_sent() {
    let cli = Cli::with_queues(&[]).await;

    let report = cli.run(&["bench", "--workers", "0", "--duration", "200ms", "--json"]).json();

    assert!(count(&report, "sent") > 0, "{report:#}");
    assert_eq!((&report["left"], &report["handled"]), (&report["sent"], &json!(0)));
    assert_eq!(report["latency"], Value::Null);
}

#[tokio::test]
async fn a_queue_that_no_bench_has_made_is_refused_and_untouched() {
    let cli = Cli::with_queues(&["orders", "empty"]).await;
    cli.run(&["send", "orders", r#"{"order": 7}"#]).done();
    let before = cli.sql("SELECT row(m.*)::text FROM vtq.orders AS m").await;

    for queue in ["orders", "empty"] {
        let refusal = cli.run(&["bench", "--duration", "200ms", "--queue", queue]).failed();
        assert!(refusal.contains("no bench has made it"), "{refusal}");
    }

    assert_eq!(cli.sql("SELECT row(m.*)::text FROM vtq.orders AS m").await, before);
    assert_eq!(cli.sql("SELECT string_agg(queue, ' ' ORDER BY queue) FROM vtq._queue").await, "empty orders");
}

#[tokio::test]
async fn a_kept_queue_is_made_anew_by_the_next_bench_unless_a_message_of_others_is_in_it() {
    let cli = Cli::with_queues(&[]).await;
    let run =
        ["bench", "--duration", "200ms", "--rate", "50", "--queue", "load", "--delayed", "30", "--keep"];

    let first = cli.run(&run);
    first.expect(0);
    assert!(first.stderr().contains("queue `load` stays"), "{}", first.stderr());
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.load").await, "30");
    let settled = cli.sql("SELECT count(*) FROM vtq.load_archive").await;
    cli.run(&run).expect(0);
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.load").await, "30");
    assert_ne!(settled, "0");

    cli.run(&["send", "load", r#"{"order": 7}"#]).done();
    let refusal = cli.run(&run).failed();

    assert!(refusal.contains("1 of its messages were sent by no bench"), "{refusal}");
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.load").await, "31");
}

#[tokio::test]
async fn a_message_of_others_that_comes_during_a_run_survives_it() {
    let cli = Cli::with_queues(&[]).await;
    let child = cli.command(&["bench", "--duration", "10m", "--queue", "load", "--json"]).spawn().unwrap();
    wait_until(PATIENCE, "messages of the bench", async || is_sending(&cli).await).await;

    let id = cli.run(&["send", "load", r#"{"order": 7}"#]).done();
    wait_until(PATIENCE, "a worker to put it off", async || {
        cli.sql(&format!("SELECT count(*) FROM vtq.load_attempts WHERE msg_id = {id}")).await == "1"
    })
    .await;
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();

    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("is left as it is: 1 of its messages"), "{stderr}");
    assert_eq!(
        cli.sql(&format!("SELECT message FROM vtq.load WHERE msg_id = {id}")).await,
        r#"{"order": 7}"#
    );
}

#[tokio::test]
async fn two_benches_do_not_share_a_queue() {
    let cli = Cli::with_queues(&[]).await;
    let mut child =
        cli.command(&["bench", "--duration", "10m", "--rate", "50", "--queue", "load"]).spawn().unwrap();
    wait_until(PATIENCE, "messages of the bench", async || is_sending(&cli).await).await;

    let refusal = cli.run(&["bench", "--queue", "load"]).failed();

    assert_eq!(refusal, "queue \"load\" is in use by another bench");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[tokio::test]
async fn ctrl_c_ends_a_run_with_its_result_and_drops_the_queue() {
    let cli = Cli::with_queues(&[]).await;
    let line = [
        "bench",
        "--duration",
        "10m",
        "--rate",
        "100",
        "--handler-time",
        "10ms",
        "--queue",
        "load",
        "--json",
    ];
    let child = cli.command(&line).spawn().unwrap();
    wait_until(PATIENCE, "messages of the bench", async || is_sending(&cli).await).await;

    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();

    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    assert_eq!(count(&report, "sent"), count(&report, "handled") + count(&report, "left"), "{report:#}");
    assert_eq!(cli.sql("SELECT count(*) FROM vtq._queue").await, "0");
}

#[tokio::test]
async fn a_snapshot_is_held_and_delayed_messages_wait() {
    let cli = Cli::with_queues(&[]).await;
    let line =
        ["bench", "--hold-snapshot", "--delayed", "40", "--rate", "100", "--duration", "10m", "--json"];
    let child = cli.command(&[&line[..], &["--queue", "load"]].concat()).spawn().unwrap();
    wait_until(PATIENCE, "messages of the bench", async || is_sending(&cli).await).await;

    let holders = cli
        .sql(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
             AND application_name = 'vtq bench' AND state = 'idle in transaction' AND backend_xmin IS NOT NULL",
        )
        .await;
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();

    assert_eq!(holders, "1");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["snapshot_held"], &report["delayed"]), (&json!(true), &json!(40)), "{report:#}");
}

#[tokio::test]
async fn the_picture_has_a_point_for_each_figure_of_both_panels() {
    let cli = Cli::with_queues(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.svg");
    let plot = ["--rate", "300", "--json", "--plot", path.to_str().unwrap()];

    let report = cli.run(&[&["bench", "--duration", "2s"], &plot[..]].concat()).json();

    let text = std::fs::read_to_string(&path).unwrap();
    let svg = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let words: Vec<&str> = svg.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    let points = |color: &str| {
        let is_point = |node: &roxmltree::Node<'_, '_>| {
            node.has_tag_name(("http://www.w3.org/2000/svg", "circle"))
                && node.attribute("fill") == Some(color)
        };
        svg.descendants().filter(is_point).count()
    };
    let series = report["series"].as_array().unwrap();
    for (name, color, key) in [
        ("sent", "#1F77B4", "sent_per_second"),
        ("handled", "#FF7F0E", "handled_per_second"),
        ("p50", "#2CA02C", "latency_p50_us"),
        ("p99", "#D62728", "latency_p99_us"),
    ] {
        let figures = series.iter().filter(|second| !second[key].is_null()).count();
        assert!(figures > 0, "{report:#}");
        assert_eq!(points(color), figures, "{name}: {report:#}\n{text}");
        assert!(words.contains(&name), "{name} is not in the legend: {text}");
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_words() {
    let cli = Cli::with_queues(&[]).await;

    for (options, words) in [
        (&["--rate", "0"][..], "leave it out to send flat out"),
        (&["--rate", "-5"], "a rate is 0.01 to 10000000"),
        (&["--rate", "NaN"], "a rate is 0.01 to 10000000"),
        (&["--payload-size", "10"], "a message has 80 to 10485760 bytes"),
        (&["--batch", "0"], "0 is not in 1..=100000"),
        (&["--batch", "100000", "--payload-size", "1000"], "lower --batch or --payload-size"),
        (&["--duration", "0"], "a run lasts 100ms to 24h"),
        (&["--producers", "0"], "give a --backlog"),
        (&["--producers", "0", "--workers", "0"], "leave nothing to measure"),
        (&["--producers", "0", "--backlog", "9", "--rate", "9"], "--rate needs a sender"),
        (&["--plot", "bench.png"], "give a path that ends in .svg"),
        (&["--plot", "/nonexistent/bench.svg"], "there is no such folder"),
        (&["--on-ack", "keep"], "possible values: archive, delete"),
    ] {
        let refusal = cli.run(&[&["bench"], options].concat()).failed();
        assert!(refusal.contains(words), "{options:?}: {refusal}");
    }
    assert_eq!(remains(&cli).await, "0 0");
}

#[tokio::test]
async fn without_vtq_in_the_database_it_says_what_to_do() {
    let refusal = Cli::empty().await.run(&["bench"]).failed();

    assert!(refusal.contains("run `vtq migrate`"), "{refusal}");
}

/// Whether a run on the queue `load` has come so far that messages of it are handled.
async fn is_sending(cli: &Cli) -> bool {
    if cli.sql("SELECT to_regclass('vtq.load_archive')").await.is_empty() {
        return false;
    }
    cli.sql("SELECT count(*) > 0 FROM vtq.load_archive").await == "t"
}

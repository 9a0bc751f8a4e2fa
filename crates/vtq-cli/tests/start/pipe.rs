//! `--pipe`: the lines, the children, and children that do not do as they should.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::worker::{Worker, World, wait_for_end};

/// A child that answers with what the message says: its text is the reply.
const ECHO: &str =
    r#"while read -r line; do printf '%s\n' "$line" | sed 's/.*"message":"//; s/"}$//; s/\\"/"/g'; done"#;

#[tokio::test(flavor = "multi_thread")]
async fn replies_say_what_becomes_of_a_message() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for reply in [
        r#"{"outcome":"done"}"#,
        r#"{"outcome":"retry","retry_after":1000,"error":{"class":"Oops","code":"E7","message":"m","detail":"d"}}"#,
        r#"{"outcome":"retry","error":"just a text"}"#,
        r#"{"outcome":"defer","delay":2000,"reason":"not now"}"#,
        r#"{"outcome":"permanent","error":{"message":"never"}}"#,
        r#"{"outcome":"undecodable"}"#,
    ] {
        ids.push(world.send(&Value::from(reply).to_string()).await);
    }
    let [done, later, again, deferred, permanent, undecodable] = ids[..] else { panic!() };

    let ended = world.once(&["--pipe", ECHO]).await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(world.fate(done).await, "done");

    world.assert_due(later, 950, 1000).await;
    let attempt = world.attempt(later).await;
    assert_eq!((&attempt["error_class"], &attempt["error_code"]), (&"Oops".into(), &"E7".into()));
    assert_eq!((&attempt["error_message"], &attempt["error_detail"]), (&"m".into(), &"d".into()));

    world.assert_due(again, 1, 6).await;
    assert_eq!(world.attempt(again).await["error_message"], "just a text");

    world.assert_due(deferred, 1950, 2000).await;
    assert_eq!(world.attempt(deferred).await["outcome"], "deferred");

    assert_eq!(world.fate(permanent).await, "dead");
    assert_eq!(world.attempt(permanent).await["outcome"], "permanent");
    assert_eq!(world.fate(undecodable).await, "dead");
    assert_eq!(world.attempt(undecodable).await["outcome"], "undecodable");
}

#[tokio::test(flavor = "multi_thread")]
async fn line_holds_the_message_digit_for_digit() {
    let world = World::new().await;
    let body = r#"{"n": 12345678901234567890.120, "t": "a\nb"}"#;
    let id = world.send_with(body, Some(r#"{"k": [1]}"#)).await;

    world.once(&["--pipe", r#"read -r line; printf '%s' "$line" > line; echo '{"outcome":"done"}'"#]).await;

    let line = fs::read_to_string(world.path("line")).unwrap();
    let start =
        format!(r#"{{"msg_id":{id},"read_ct":1,"attempt":1,"queue":"q","headers":{{"k": [1]}},"message":"#);
    assert_eq!(line, format!("{start}{body}}}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn children_stay_for_the_next_message_and_end_with_the_worker() {
    let world = World::new().await;
    for n in 0..50 {
        world.send(&n.to_string()).await;
    }

    let child =
        r#"echo $$ >> pids; while read -r line; do echo '{"outcome":"done"}'; done; echo $$ >> ended"#;
    let ended = world.once(&["--pipe", child]).await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(world.count("vtq.q_archive").await, 50);
    let mut pids = world.words("pids");
    assert!((1..=2).contains(&pids.len()), "{pids:?}");
    // By the end of their input, not by a signal.
    let mut last = world.words("ended");
    pids.sort();
    last.sort();
    assert_eq!(pids, last);
    for pid in pids {
        wait_for_end(&pid).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_costs_one_message_an_attempt() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(world.send(if n == 4 { "\"crash\"" } else { "\"fine\"" }).await);
    }

    let child = r#"while read -r line; do
        case $line in *crash*) kill -KILL $$;; esac
        echo '{"outcome":"done"}'
    done"#;
    world.once(&["--pipe", child]).await;

    assert_eq!(world.count("vtq.q_archive").await, 9);
    let attempt = world.attempt(ids[4]).await;
    assert_eq!(attempt["outcome"], "failed");
    assert_eq!(attempt["error_class"], "signal 9 (SIGKILL)");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_reply_fails_the_message_and_ends_the_child() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for reply in ["S3CRET", r#"{"outcome":"done","msg_id":77}"#, r#"{"outcome":"S3CRET"}"#] {
        ids.push(world.send(&Value::from(reply).to_string()).await);
    }

    let child = format!("echo $$ >> pids; {ECHO}");
    let ended = world.once(&["--pipe", &child]).await;

    for id in ids {
        let attempt = world.attempt(id).await;
        assert_eq!(attempt["error_class"], "bad reply", "{attempt}");
        assert!(!attempt.to_string().contains("S3CRET"), "{attempt}");
    }
    assert!(!ended.stderr.contains("S3CRET"), "{}", ended.stderr);
    let pids = world.words("pids");
    assert!(pids.len() >= 3, "{pids:?}");
    for pid in pids {
        wait_for_end(&pid).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn children_that_die_at_once_are_not_started_in_a_hurry() {
    let world = World::with_options(r#"{"max_attempts": 1}"#).await;
    for n in 0..4 {
        world.send(&n.to_string()).await;
    }

    let started = Instant::now();
    let mut command = world.command(&["--queues", "q: 1", "--once", "--pipe", "echo $$ >> pids; exit 7"]);
    let ended = Worker::start(&mut command).ended().await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(world.words("pids").len(), 4);
    // 0.1, 0.2 and 0.4 s before the second, third and fourth.
    assert!(started.elapsed() >= Duration::from_millis(700), "{:?}", started.elapsed());
    assert_eq!(
        world.count("vtq.q_dlq WHERE headers -> 'vtq_dead_letter' ->> 'error_class' = 'exit 7'").await,
        4
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn second_line_is_never_taken_for_the_next_reply() {
    let world = World::new().await;
    for n in 0..4 {
        world.send(&n.to_string()).await;
    }

    // The second line would settle the next message before it is looked at.
    let child = r#"while read -r line; do echo $$ >> pids; printf '%s\n%s\n' '{"outcome":"done"}' '{"outcome":"done"}'; done"#;
    let mut command = world.command(&["--queues", "q: 1", "--once", "--pipe", child]);
    let ended = Worker::start(&mut command).ended().await;

    assert_eq!(world.count("vtq.q_archive").await, 4);
    let mut pids = world.words("pids");
    assert_eq!(pids.len(), 4, "each message was read: {pids:?}");
    pids.dedup();
    assert_eq!(pids.len(), 4, "by a child of its own: {pids:?}");
    assert!(ended.stderr.contains("more than one line"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn child_may_leave_between_two_messages() {
    let world = World::new().await;
    for n in 0..20 {
        world.send(&n.to_string()).await;
    }

    // Sometimes it is seen to be gone before it is asked, and sometimes not.
    world.once(&["--pipe", r#"read -r line; echo '{"outcome":"done"}'"#]).await;

    assert_eq!(world.count("vtq.q_archive").await, 20);
    assert_eq!(world.count("vtq.q_attempts").await, 0);
}

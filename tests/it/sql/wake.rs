//! Who is woken: only a sleeper, once a transaction, and never by what was rolled back.

use tokio::sync::mpsc::UnboundedReceiver;
use tokio_postgres::AsyncMessage;

use super::session::Session;

/// A session, and one that listens to queue `q`.
async fn listening() -> (Session, Session, UnboundedReceiver<AsyncMessage>) {
    let s = Session::with_queue("{}").await;
    let (listener, heard) = s.overheard().await;
    listener.run("LISTEN vtq_q; LISTEN mark").await;
    (s, listener, heard)
}

/// The channels that were notified so far.
async fn channels(s: &Session, heard: &mut UnboundedReceiver<AsyncMessage>) -> Vec<String> {
    // Notifications arrive in the order of the commits, so that this one is the last.
    s.run("NOTIFY mark").await;
    let mut channels = Vec::new();
    while let Some(message) = heard.recv().await {
        let AsyncMessage::Notification(notification) = message else { continue };
        if notification.channel() == "mark" {
            break;
        }
        assert_eq!(notification.payload(), "");
        channels.push(notification.channel().to_owned());
    }
    channels
}

#[tokio::test]
async fn a_queue_that_nobody_sleeps_on_sends_no_notify() {
    let (s, _listener, mut heard) = listening().await;

    s.run("SELECT vtq.send('q', '1'); SELECT vtq.send_batch('q', '{2,3}'); SELECT vtq.read('q')").await;
    s.run("SELECT vtq.fail('q', 1, 1)").await;

    assert_eq!(channels(&s, &mut heard).await, Vec::<String>::new());
}

#[tokio::test]
async fn whatever_makes_a_message_due_wakes_a_sleeper() {
    let (s, _listener, mut heard) = listening().await;
    s.run("SELECT vtq.send_batch('q', '{1,2,3,4}'); SELECT vtq.read('q', qty => 4)").await;
    s.run("SELECT vtq.dead_letter('q', 4, 1); SELECT vtq.send('q', '5', delay => '1 h')").await;
    s.run("SELECT vtq._doze('{q}', 'w', '1 min')").await;
    let calls = [
        "send('q', '1')",
        "send_batch('q', '{1}')",
        "fail('q', 1, 1)",
        "defer('q', 2, 1, '1 s')",
        "release('q', '{3}', '{1}')",
        "redrive('q', 4)",
        "run_now('q', 5)",
        "resume('q')",
    ];

    for call in calls {
        s.run(&format!("SELECT vtq.{call}")).await;
        assert_eq!(channels(&s, &mut heard).await, ["vtq_q"], "{call}");
    }
}

#[tokio::test]
async fn a_transaction_notifies_once() {
    let (s, _listener, mut heard) = listening().await;
    s.run("SELECT vtq._doze('{q}', 'w', '1 min')").await;

    s.run("BEGIN; SELECT vtq.send_batch('q', array_agg('1'::jsonb)) FROM generate_series(1, 10000)").await;
    s.run("SELECT vtq.send('q', '1'); SELECT vtq.send('q', '1'); COMMIT").await;

    assert_eq!(channels(&s, &mut heard).await, ["vtq_q"]);
}

#[tokio::test]
async fn a_rolled_back_send_wakes_nobody() {
    let (s, _listener, mut heard) = listening().await;
    s.run("SELECT vtq._doze('{q}', 'w', '1 min')").await;

    s.run("BEGIN; SELECT vtq.send('q', '1'); ROLLBACK").await;

    assert_eq!(channels(&s, &mut heard).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_sleeper_that_rose_or_lapsed_is_not_woken() {
    let (s, _listener, mut heard) = listening().await;
    s.run("SELECT vtq._doze('{q}', 'w', '1 min'); SELECT vtq._rise('w')").await;
    s.run("INSERT INTO vtq._sleeper (queue, worker_id, until) VALUES ('q', 'gone', now() - interval '1 s')")
        .await;

    s.send().await;

    assert_eq!(channels(&s, &mut heard).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_send_that_cannot_see_a_new_sleeper_notifies_anyway() {
    let (s, _listener, mut heard) = listening().await;
    let sleeper = s.another().await;
    s.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;
    sleeper.run("SELECT vtq._doze('{q}', 'w', '1 min')").await;

    s.run("SELECT vtq.send('q', '1'); COMMIT").await;

    assert_eq!(channels(&s, &mut heard).await, ["vtq_q"]);
}

#[tokio::test]
async fn a_sleeper_learns_of_a_send_that_is_not_committed_yet() {
    let s = Session::with_queue("{}").await;
    let sender = s.another().await;
    let written = "SELECT is_written FROM vtq._doze('{q}', 'w', '1 min')";
    assert!(!s.value::<bool>(written).await);

    sender.run("BEGIN; SELECT vtq.send('q', '1')").await;
    let during = s.value::<bool>(written).await;
    sender.run("COMMIT").await;

    assert!(during);
    assert!(!s.value::<bool>(written).await);
}

#[tokio::test]
async fn a_sleeper_learns_when_the_next_message_is_due() {
    let s = Session::with_queue(r#"{"priorities": [1, 0]}"#).await;
    let due = "SELECT extract(epoch FROM due_in)::integer FROM vtq._doze('{q}', 'w', '1 min')";
    assert_eq!(s.value::<Option<i32>>(due).await, None);
    s.run("SELECT vtq.send('q', '1', delay => '100 s')").await;
    let delayed = s.value::<i32>(due).await;
    s.run("SELECT vtq.send('q', '1', priority => 1); SELECT vtq.read('q', '50 s')").await;

    let leased = s.value::<i32>(due).await;

    assert!((99..=100).contains(&delayed), "{delayed}");
    assert!((49..=50).contains(&leased), "{leased}");
}

//! Handlers of batches: every message of one is settled on its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use vtq::{Backoff, Failure, Outcome, Outgoing, QueueOptions, SendOptions, batch_fn};

use super::{Bench, until};

const LINGER: Duration = Duration::from_millis(200);

/// A queue with messages 1 to `count`, whose failed runs wait for an hour.
async fn with_messages(count: i64) -> Bench {
    let hour = Backoff::fixed(Duration::from_secs(3600));
    let bench = Bench::new(QueueOptions::new().backoff(&hour)).await;
    let messages: Vec<Outgoing> = (1..=count).map(|n| Outgoing::new(&n).unwrap()).collect();
    bench.queue.send_batch(&messages, &SendOptions::new()).await.unwrap();
    bench
}

/// Elsewhere one failure retries the whole batch, and the other nine run twice.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_batch_only_what_failed_is_retried_with_its_own_error() {
    let bench = with_messages(10).await;
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let seen = sizes.clone();
    let handler = batch_fn(10, Duration::from_secs(5), move |batch| {
        seen.lock().unwrap().push(batch.len());
        async move {
            let outcome = |id: i64| match id {
                3 => Outcome::Failed(Failure::new("three").class("Three")),
                7 => {
                    Outcome::Failed(Failure::new("seven").class("Seven").retry_after(Duration::from_secs(60)))
                }
                _ => Outcome::Done,
            };
            batch.iter().map(|(message, _)| outcome(message.id())).collect()
        }
    });

    let worker = bench.start_with(handler, 10, |builder| builder);
    until("eight to be archived and two to be retried", async || {
        bench.number("SELECT count(*) FROM vtq.q_archive").await == 8
            && bench.number("SELECT count(*) FROM vtq.q_attempts").await == 2
    })
    .await;
    worker.stop().await;

    assert_eq!(*sizes.lock().unwrap(), [10]);
    assert_eq!(bench.number("SELECT max(read_ct)::bigint FROM vtq.q_archive").await, 1);
    let classes = "SELECT string_agg(msg_id || ' ' || error_class, ', ' ORDER BY msg_id) FROM vtq.q_attempts";
    assert_eq!(bench.text(classes).await, "3 Three, 7 Seven");
    let own_wait =
        "SELECT count(*) FROM vtq.q WHERE msg_id = 7 AND ready_at < clock_timestamp() + interval '5 min'";
    assert_eq!(bench.number(own_wait).await, 1);
    let others =
        "SELECT count(*) FROM vtq.q WHERE msg_id = 3 AND ready_at > clock_timestamp() + interval '5 min'";
    assert_eq!(bench.number(others).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_does_not_fill_starts_after_its_linger() {
    let bench = with_messages(3).await;
    let handler = batch_fn(100, LINGER, |batch| async move { batch.iter().map(|_| Outcome::Done).collect() });

    let worker = bench.start_with(handler, 100, |builder| builder);

    until("all to be archived", async || bench.number("SELECT count(*) FROM vtq.q_archive").await == 3).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_and_a_wrong_number_of_outcomes_fail_every_message_of_the_batch() {
    let panics = batch_fn(2, LINGER, |batch| async move {
        assert!(batch.is_empty(), "no luck with {}", batch.len());
        Vec::new()
    });
    let forgets = batch_fn(2, LINGER, |_| async { vec![Outcome::Done] });

    let bench = with_messages(2).await;
    let worker = bench.start_with(panics, 2, |builder| builder);
    recorded(&bench, "panicked", "no luck with 2").await;
    worker.stop().await;
    let bench = with_messages(2).await;
    let worker = bench.start_with(forgets, 2, |builder| builder);
    recorded(&bench, "failed", "the batch handler answered 1 outcomes for 2 messages").await;
    worker.stop().await;
}

async fn recorded(bench: &Bench, outcome: &str, message: &str) {
    until("both to be recorded", async || bench.number("SELECT count(*) FROM vtq.q_attempts").await == 2)
        .await;
    let found = format!(
        "SELECT count(*) FROM vtq.q_attempts WHERE outcome = '{outcome}' AND error_message = '{message}'"
    );
    assert_eq!(bench.number(&found).await, 2, "{outcome}");
}

//! Handlers that are faster than the database records what they did.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vtq::{Message, QueueOptions, handler_fn};

use super::{Bench, until};

/// More than a worker holds unsettled.
const MESSAGES: i64 = 6000;
/// Looks that must agree until a worker counts as at rest.
const LOOKS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn fetching_that_paused_for_the_settler_goes_on_when_it_has_settled() {
    let bench = Bench::new(QueueOptions::new()).await;
    bench
        .number(&format!("SELECT count(vtq.send('q', to_jsonb(n))) FROM generate_series(1, {MESSAGES}) AS n"))
        .await;
    let locker = Arc::new(bench.db.client().await);
    let (hand, is_locked) = (locker.clone(), Arc::new(AtomicBool::new(false)));
    let handler = handler_fn(move |message: Message, _| {
        let (hand, is_first) = (hand.clone(), !is_locked.swap(true, Ordering::Relaxed));
        async move {
            if is_first {
                // Whoever settles this one waits for the lock, and all that end meanwhile wait behind it.
                let lock = format!("BEGIN; SELECT FROM vtq.q WHERE msg_id = {} FOR UPDATE", message.id());
                hand.batch_execute(&lock).await.unwrap();
            }
        }
    });
    let worker = bench.start(handler, |builder| builder);
    let in_flight = async || bench.number("SELECT count(*) FROM vtq.q WHERE vt > now()").await;
    let (mut last, mut alike) = (0, 0);
    until("the worker to hold all that it may", async || {
        let now = in_flight().await;
        alike = if now == last && now > 0 { alike + 1 } else { 0 };
        last = now;
        alike >= LOOKS
    })
    .await;
    assert!(last < MESSAGES, "nothing held the worker back: {last} in flight");

    locker.batch_execute("ROLLBACK").await.unwrap();

    until("all messages to be settled", async || bench.number("SELECT count(*) FROM vtq.q").await == 0).await;
    assert_eq!(worker.stop().await.done, MESSAGES.unsigned_abs());
}

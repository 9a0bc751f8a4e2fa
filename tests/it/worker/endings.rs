//! Every way a run can end, and what the database says of it afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json as value;
use vtq::{
    Backoff, CancelCause, Context, Ending, Failure, Handler, Message, Outcome, Outgoing, QueueOptions,
    SendOptions, WorkerEvent, handler_fn, json,
};

use super::{Bench, until};

#[derive(Deserialize)]
struct Order {
    id: u64,
}

fn quick() -> QueueOptions {
    QueueOptions::new().max_attempts(3).backoff(&Backoff::fixed(Duration::from_millis(10)))
}

/// Sends one message to a queue with these options, and runs a worker until the queue is empty.
async fn run_one(options: QueueOptions, message: serde_json::Value, handler: impl Handler) -> Bench {
    let bench = Bench::new(options).await;
    bench.queue.send(&message).await.unwrap();
    let worker = bench.start(handler, |builder| builder.grace(Duration::from_millis(100)));
    until("the queue to be empty", async || bench.number("SELECT count(*) FROM vtq.q").await == 0).await;
    worker.stop().await;
    bench
}

async fn dead_reason(bench: &Bench) -> String {
    bench.text("SELECT headers #>> '{vtq_dead_letter,reason}' FROM vtq.q_dlq").await
}

async fn outcomes(bench: &Bench) -> String {
    bench.text("SELECT string_agg(outcome, ' ' ORDER BY read_ct) FROM vtq.q_attempts").await
}

#[tokio::test]
async fn handled_message_is_archived() {
    let bench =
        run_one(quick(), value!({"id": 7}), json(|order: Order, _| async move { assert_eq!(order.id, 7) }))
            .await;

    assert_eq!(bench.number("SELECT count(*) FROM vtq.q_archive WHERE message = '{\"id\": 7}'").await, 1);
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q_attempts").await, 0);
}

#[tokio::test]
async fn numbers_reach_the_handler_digit_for_digit() {
    let digits = "123456789012345678901234567890.10";
    let bench = Bench::new(quick()).await;
    bench.queue.send_with(&Outgoing::from_json(digits).unwrap(), &SendOptions::new()).await.unwrap();
    let handler =
        handler_fn(move |message: Message, _| async move { assert_eq!(message.body.get(), digits) });

    let stopped = bench.start(handler, |builder| builder.once()).ended().await;

    assert_eq!(stopped.done, 1);
}

#[tokio::test]
async fn undecodable_message_is_dead_at_once() {
    let bench = run_one(quick(), value!({"id": "seven"}), json(|_: Order, _| async {})).await;

    assert_eq!(dead_reason(&bench).await, "undecodable");
    assert_eq!(outcomes(&bench).await, "undecodable");
}

#[tokio::test]
async fn failing_message_is_dead_after_its_budget() {
    let handler = handler_fn(|_, _| async { "x".parse::<u8>().map(drop) });

    let bench = run_one(quick(), value!(1), handler).await;

    assert_eq!(dead_reason(&bench).await, "attempts_exhausted");
    assert_eq!(outcomes(&bench).await, "failed failed failed");
    assert_eq!(
        bench.text("SELECT DISTINCT error_class FROM vtq.q_attempts").await,
        "core::num::error::ParseIntError"
    );
}

#[tokio::test]
async fn panic_is_a_failure_with_its_text() {
    let handler = handler_fn(|_, _| async {
        if std::hint::black_box(true) {
            panic!("out of luck")
        }
    });

    let bench = run_one(quick(), value!(1), handler).await;

    assert_eq!(outcomes(&bench).await, "panicked panicked panicked");
    assert_eq!(bench.text("SELECT DISTINCT error_message FROM vtq.q_attempts").await, "out of luck");
}

#[tokio::test]
async fn permanent_failure_is_dead_at_once() {
    let handler =
        handler_fn(|_, _| async { Err::<(), _>(Failure::permanent("no such order").code("E-404")) });

    let bench = run_one(quick(), value!(1), handler).await;

    assert_eq!(dead_reason(&bench).await, "permanent_failure");
    assert_eq!(bench.text("SELECT headers #>> '{vtq_dead_letter,error_code}' FROM vtq.q_dlq").await, "E-404");
}

#[tokio::test]
async fn deferred_run_does_not_count() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let handler = handler_fn(move |message: Message, _| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            assert_eq!(message.attempt, 1);
            if run < 5 { Outcome::defer(Duration::from_millis(1)) } else { Outcome::Done }
        }
    });

    let bench = run_one(quick(), value!(1), handler).await;

    assert_eq!(runs.load(Ordering::SeqCst), 6);
    assert_eq!(bench.number("SELECT count(*) FROM vtq.q_archive").await, 1);
    assert_eq!(outcomes(&bench).await, "deferred deferred deferred deferred deferred");
}

#[tokio::test]
async fn run_past_its_timeout_is_recorded_so_whatever_it_returns() {
    let handler = handler_fn(|_, context: Context| async move {
        assert_eq!(context.until_cancelled().await, CancelCause::TimedOut);
        Outcome::Done
    });

    let bench = run_one(quick().timeout(Duration::from_millis(50)), value!(1), handler).await;

    assert_eq!(outcomes(&bench).await, "timed_out timed_out timed_out");
    assert_eq!(dead_reason(&bench).await, "attempts_exhausted");
}

#[tokio::test]
async fn handler_that_does_not_react_is_dropped_after_its_grace() {
    let handler = handler_fn(|_, _| std::future::pending::<()>());

    let bench = run_one(quick().max_attempts(1).timeout(Duration::from_millis(50)), value!(1), handler).await;

    assert_eq!(outcomes(&bench).await, "timed_out");
}

#[tokio::test]
async fn message_with_a_timeout_of_its_own_has_that() {
    let bench = Bench::new(quick().timeout(None).max_attempts(1)).await;
    let options = SendOptions::new().timeout(Duration::from_millis(50));
    bench.queue.send_with(&Outgoing::new(&1).unwrap(), &options).await.unwrap();

    let handler = handler_fn(|_, _| std::future::pending::<()>());
    let stopped =
        bench.start(handler, |builder| builder.once().grace(Duration::from_millis(10))).ended().await;

    assert_eq!(stopped.dead, 1);
}

#[tokio::test]
async fn every_ending_is_told_once() {
    let bench = Bench::new(quick().max_attempts(1)).await;
    let batch: Vec<Outgoing> = (0..40).map(|n| Outgoing::new(&n).unwrap()).collect();
    bench.queue.send_batch(&batch, &SendOptions::new()).await.unwrap();
    let handler =
        json(|n: u32, _| async move { if n.is_multiple_of(4) { Err(Failure::new("four")) } else { Ok(()) } });

    let worker = bench.start(handler, |builder| builder.once());
    let events = worker.events.clone();
    let stopped = worker.ended().await;

    let told = |ending| {
        events.count(|event| matches!(event, WorkerEvent::Settled { ending: e, .. } if *e == ending))
    };
    assert_eq!((stopped.done, stopped.dead), (30, 10));
    assert_eq!((told(Ending::Done), told(Ending::Dead)), (30, 10));
}

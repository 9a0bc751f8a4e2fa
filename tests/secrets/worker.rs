//! The worker, with handlers that fail in every way and say what they have read.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::oneshot;
use vtq::{
    Backoff, Capsule, Context, Failure, Handler, Message, Outcome, QueueOptions, Worker, WorkerEvent,
    handler_fn,
};
use vtq_tests::wait_until;

use super::{Bench, MARKER, options, outgoing};

fn quick() -> QueueOptions {
    QueueOptions::new().max_attempts(2).backoff(&Backoff::fixed(Duration::from_millis(10)))
}

/// Serves the queue until a query answers true, and shows every event.
async fn serve(bench: &Bench, handler: impl Handler, until: &str) {
    let shown = bench.shown.clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::builder(&bench.vtq)
        .capsule(Capsule::new(["q"], handler).concurrency(2))
        .grace(Duration::from_millis(100))
        .on_event(move |event: &WorkerEvent| super::show(&shown, "event", event))
        .build()
        .unwrap();
    bench.show("worker", &worker);
    let task = tokio::spawn(worker.run(async move {
        let _ = stopped.await;
    }));
    wait_until(Duration::from_secs(30), until, async || {
        bench.client.query_one(until, &[]).await.unwrap().get::<_, bool>(0)
    })
    .await;
    drop(stop);
    bench.show("stopped", &task.await.unwrap().unwrap());
}

const ALL_DEAD: &str = "SELECT count(*) = 0 FROM vtq.q";

/// Ends each run in another way, always with what it has read.
async fn misbehave(message: Message, context: Context) -> Outcome {
    tracing::info!(?message, ?context, "got a message");
    let text = message.body.get().to_owned();
    let outcome = match message.lease.read_ct {
        1 => Outcome::Deferred { delay: Duration::ZERO, reason: Some(text) },
        2 => Outcome::Failed(Failure::new(&text).detail(text)),
        // Without a hook of its own a panic tells standard error what it says; that is not vtq's to keep.
        _ => std::panic::resume_unwind(Box::new(text)),
    };
    tracing::info!(?outcome, "done");
    outcome
}

#[tokio::test]
async fn no_failure_of_a_handler_shows() {
    let bench = Bench::new(quick()).await;
    bench.queue.send_batch(&[outgoing(), outgoing()], &options()).await.unwrap();

    serve(&bench, handler_fn(misbehave), ALL_DEAD).await;

    bench.show("dead letters", &bench.queue.dlq_list(10, None).await.unwrap());
    let kept =
        "SELECT count(*) FROM vtq.q_attempts WHERE error_message LIKE '%card%' OR reason LIKE '%card%'";
    let kept: i64 = bench.client.query_one(kept, &[]).await.unwrap().get(0);
    assert_eq!(kept, 6, "the database keeps what was said");
    bench.assert_discreet();
}

#[derive(Deserialize)]
struct Order {
    #[serde(rename = "card")]
    _card: u64,
}

#[tokio::test]
async fn what_does_not_decode_is_told_to_the_database_alone() {
    let bench = Bench::new(quick()).await;
    bench.queue.send_with(&outgoing(), &options()).await.unwrap();

    serve(&bench, vtq::json(|_: Order, _| async {}), ALL_DEAD).await;

    let told = bench.client.query_one("SELECT error_message FROM vtq.q_attempts", &[]).await.unwrap();
    assert!(told.get::<_, String>(0).contains(MARKER), "the whole reason is with the attempt");
    bench.assert_discreet();
}

#[tokio::test]
async fn what_the_database_says_to_the_worker_does_not_show() {
    let bench = Bench::new(quick()).await;
    // Whatever is to be recorded is refused at first, with the row in the DETAIL.
    let rule = "ALTER TABLE vtq.q_attempts ADD CONSTRAINT terse CHECK (length(error_message) < 3)";
    bench.client.batch_execute(rule).await.unwrap();
    bench.queue.send_with(&outgoing(), &options()).await.unwrap();

    let mended = async {
        wait_until(Duration::from_secs(30), "the worker to tell", async || {
            bench.shown.lock().unwrap().contains("QueueTrouble")
        })
        .await;
        bench.client.batch_execute("ALTER TABLE vtq.q_attempts DROP CONSTRAINT terse").await.unwrap();
    };
    let handler = handler_fn(|_, _| async { Outcome::Failed(Failure::new(MARKER)) });
    tokio::join!(serve(&bench, handler, ALL_DEAD), mended);

    bench.assert_discreet();
}

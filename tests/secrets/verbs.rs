//! Every verb, with secrets in whatever it takes.

use std::time::Duration;

use vtq::{
    Exact, Failure, Lease, Outcome, Purge, QueueOptions, ReadOptions, Reason, RedriveFilter, Schedule,
};

use super::{Bench, MARKER, body, options, outgoing};

const SECOND: Duration = Duration::from_secs(1);

fn failure() -> Failure {
    Failure::new(MARKER).detail(MARKER)
}

/// Reads one message, which is shown.
async fn read(bench: &Bench) -> Lease {
    let messages = bench.queue.read(&ReadOptions::new()).await.unwrap();
    bench.show("read", &messages);
    messages[0].lease
}

#[tokio::test]
async fn no_verb_shows_a_message() {
    let bench = Bench::new(QueueOptions::new()).await;
    let queue = &bench.queue;
    for value in [outgoing(), outgoing()] {
        bench.show("outgoing", &value);
    }
    bench.show("send options", &options());
    queue.send(&body()).await.unwrap();
    queue.send_with(&outgoing(), &options()).await.unwrap();
    queue.send_batch(&[outgoing(), outgoing(), outgoing()], &options()).await.unwrap();
    bench.show("peek", &queue.peek(10).await.unwrap());

    let lease = read(&bench).await;
    bench.show("extend", &queue.extend(&[lease], Some(SECOND)).await.unwrap());
    bench.show("release", &queue.release(&[lease], Some(MARKER)).await.unwrap());
    let lease = read(&bench).await;
    bench.show("fail", &queue.fail(lease, &failure().retry_after(SECOND)).await.unwrap());
    bench.show("run_now", &queue.run_now(lease.id).await.unwrap());
    bench.show("attempts", &queue.attempts(lease.id).await.unwrap());
    let lease = read(&bench).await;
    bench.show("defer", &queue.defer(lease, SECOND, Some(MARKER)).await.unwrap());
    bench.show("cancel", &queue.cancel(lease.id).await.unwrap());
    let lease = read(&bench).await;
    bench.show("ack", &queue.ack(lease).await.unwrap());
    bench.show("stale ack", &queue.ack_batch(&[lease]).await.unwrap());
    queue.explain(lease.id).await.unwrap();

    bench.show("sweep", &queue.sweep(10).await.unwrap());
    bench.show("maintain", &queue.maintain().await.unwrap());
    bench.show("metrics", &queue.metrics(Exact::Yes).await.unwrap());
    bench.show("all metrics", &bench.vtq.metrics_all(Exact::No).await.unwrap());
    bench.show("queue", queue);
    bench.assert_discreet();
}

#[tokio::test]
async fn no_schedule_shows_its_message() {
    let bench = Bench::new(QueueOptions::new()).await;
    let headers = serde_json::Map::from_iter([("secret".to_owned(), MARKER.into())]);
    let schedule =
        Schedule::new("s", "* * * * * *", bench.queue.name().as_str(), outgoing()).headers(headers);
    bench.show("schedule", &schedule);

    bench.vtq.schedule_add(&schedule).await.unwrap();
    bench.vtq.schedule_run("s").await.unwrap();

    bench.show("schedules", &bench.vtq.schedules().await.unwrap());
    bench.queue.drop_queue().await.unwrap();
    bench.show("refusal", &bench.vtq.schedule_run("s").await.unwrap_err());
    bench.assert_discreet();
}

#[tokio::test]
async fn no_dead_letter_shows_its_message() {
    let bench = Bench::new(QueueOptions::new()).await;
    let queue = &bench.queue;
    queue.send_batch(&[outgoing(), outgoing()], &options()).await.unwrap();

    for _ in 0..2 {
        let lease = read(&bench).await;
        let dead = queue.dead_letter(lease, Reason::Undecodable, Some(&failure())).await.unwrap();
        bench.show("dead_letter", &dead);
        bench.show("attempts", &queue.attempts(lease.id).await.unwrap());
        bench.show("dlq_show", &queue.dlq_show(lease.id).await.unwrap());
    }

    bench.show("dlq_list", &queue.dlq_list(10, None).await.unwrap());
    bench.show("redrive", &queue.redrive(1, None).await.unwrap());
    bench.show("redrive_all", &queue.redrive_all(10, &RedriveFilter::new()).await.unwrap());
    bench.show("dlq_purge", &queue.dlq_purge(Purge::OlderThan(Duration::ZERO), 10).await.unwrap());
    bench.assert_discreet();
}

#[tokio::test]
async fn no_transaction_of_the_caller_shows_a_message() {
    let mut bench = Bench::new(QueueOptions::new()).await;
    let tx = bench.client.transaction().await.unwrap();
    let on = bench.queue.on(&tx);

    on.send(&body()).await.unwrap();
    on.send_batch(&[outgoing(), outgoing(), outgoing()], &options()).await.unwrap();
    let read = on.read(&ReadOptions::new().qty(3)).await.unwrap();
    let fate = on.fail(read[0].lease, &failure()).await.unwrap();
    let deferred = on.defer(read[1].lease, SECOND, Some(MARKER)).await.unwrap();
    let dead = on.dead_letter(read[2].lease, Reason::ByOperator, Some(&failure())).await.unwrap();
    tx.commit().await.unwrap();

    bench.show("in a transaction", &(read, fate, deferred, dead));
    bench.assert_discreet();
}

#[test]
fn no_outcome_shows_a_text() {
    let outcomes = [
        Outcome::Failed(failure()),
        Outcome::Deferred { delay: SECOND, reason: Some(MARKER.into()) },
        Outcome::Released { reason: Some(MARKER.into()) },
    ];

    assert!(!format!("{outcomes:?}").contains(MARKER));
}

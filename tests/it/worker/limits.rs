//! Several workers of one queue keep to its limits together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use vtq::{QueueOptions, handler_fn};

use super::{Bench, until};

#[tokio::test(flavor = "multi_thread")]
async fn four_workers_together_hold_no_more_than_max_in_flight() {
    let bench = Bench::new(QueueOptions::new().max_in_flight(3)).await;
    bench.number("SELECT count(vtq.send('q', '1')) FROM generate_series(1, 100)").await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = || {
        let (running, most) = (running.clone(), most.clone());
        handler_fn(move |_, _| {
            let (running, most) = (running.clone(), most.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
                running.fetch_sub(1, Ordering::SeqCst);
            }
        })
    };

    let workers = [(); 4].map(|()| bench.start(handler(), |builder| builder));
    until("all to be archived", async || bench.number("SELECT count(*) FROM vtq.q_archive").await == 100)
        .await;
    let mut done = 0;
    for worker in workers {
        done += worker.stop().await.done;
    }

    assert_eq!(done, 100);
    assert!((2..=3).contains(&most.load(Ordering::SeqCst)), "{most:?} ran at once");
}

//! Sends a thousand orders and handles them: `cargo run --example orders -- postgres://localhost/shop`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use vtq::{Capsule, Failure, Outgoing, QueueOptions, SendOptions, Vtq, Worker, json};

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    id: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("give the database's URL")?;
    let vtq = Vtq::connect(&url).await?;
    vtq.migrate().await?;
    let orders = vtq.queue("orders")?;
    orders.create(&QueueOptions::new()).await?;

    let batch: Vec<Outgoing> = (1..=1000).map(|id| Outgoing::new(&Order { id })).collect::<Result<_, _>>()?;
    orders.send_batch(&batch, &SendOptions::new()).await?;

    let handled = Arc::new(AtomicUsize::new(0));
    let count = handled.clone();
    let handler = json(move |order: Order, _| {
        let count = count.clone();
        async move {
            if order.id.is_multiple_of(100) {
                return Err(Failure::permanent("every hundredth order is beyond help"));
            }
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    });
    let worker =
        Worker::builder(&vtq).capsule(Capsule::new(["orders"], handler).concurrency(16)).once().build()?;
    let stopped = worker.run(std::future::pending()).await?;

    eprintln!("handled {}, {stopped:?}", handled.load(Ordering::Relaxed));
    Ok(())
}

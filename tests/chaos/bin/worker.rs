//! A worker in a process of its own, which `tests/chaos` kills and stops: `chaos-worker <url> <slots>`.
//!
//! It says on its standard output what its handlers do, a line each, before they do it: `begin` and `end` with message,
//! `read_ct` and time, `cancelled`, and in the end `stopped` with its numbers. It stops when its standard input ends,
//! so that it does not outlive the test.

use std::io::{Read, Write};
use std::time::Duration;

use vtq::{CancelCause, Capsule, ConnectOptions, Context, Lease, Message, Worker};

#[path = "../clock.rs"]
mod clock;
#[path = "../work.rs"]
mod work;

/// Ends a run also when its future is dropped.
struct Ends(Lease);

impl Drop for Ends {
    fn drop(&mut self) {
        say(format_args!("end {} {} {}", self.0.id, self.0.read_ct, clock::now()));
    }
}

fn say(line: std::fmt::Arguments<'_>) {
    // Nobody listens any more when the test is over.
    let _ = writeln!(std::io::stdout(), "{line}");
}

async fn handle(message: Message, context: Context) -> vtq::Outcome {
    let lease = message.lease;
    say(format_args!("begin {} {} {}", lease.id, lease.read_ct, clock::now()));
    let _ends = Ends(lease);
    let outcome = work::perform(&message, &context).await;
    if context.cancelled() == Some(CancelCause::LeaseLost) {
        say(format_args!("cancelled"));
    }
    outcome
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, slots] = arguments.as_slice() else { panic!("usage: chaos-worker <url> <slots>") };
    let slots = slots.parse().expect("a number of slots");
    let options = ConnectOptions::from_url(url).expect("a URL").statement_limit(Duration::from_secs(2));
    let vtq = options.lazy().expect("options that work");
    let capsule = Capsule::new(["q"], vtq::handler_fn(handle)).concurrency(slots);
    let worker = Worker::builder(&vtq).capsule(capsule).build().expect("a worker that can be built");
    let (owned, orphaned) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        drop(owned);
    });
    let shutdown = async {
        let _ = orphaned.await;
    };
    let stopped = worker.run(shutdown).await.expect("a worker that ends without an error");
    say(format_args!("stopped {} {}", stopped.lost, stopped.late));
}

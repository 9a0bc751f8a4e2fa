//! The demo's handler, and the process that it runs in.
//!
//! What becomes of a message hangs on its id alone, so that every run tells the same story.

use std::io::Read;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::sync::oneshot;
use vtq::{Capsule, Exact, Failure, Message, MessageId, Outcome, Worker, handler_fn};

use super::QUEUE;
use crate::args::Global;
use crate::exit::Exit;

/// How many messages are in hand at once.
pub(super) const SLOTS: u32 = 5;

/// Kills its worker the first time.
const KILLS_ONCE: MessageId = 7;

/// The one that kills its worker each time is this far from the end, where few others are left to be held up by it.
const KILLER_FROM_END: MessageId = 3;

/// A worker tells the database with its heartbeat which runs have started: one that dies before does not count as an
/// attempt. So a killer lives for some heartbeats, and they are quick.
const HEARTBEAT: Duration = Duration::from_millis(100);
const BEFORE_THE_KILL: Duration = Duration::from_millis(250);

/// What the handler makes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Succeeds,
    /// Fails this many times, and then succeeds.
    Fails(i32),
    FailsAlways,
    FailsForGood,
    DefersOnce,
    KillsOnce,
    KillsAlways,
}

impl Role {
    /// The role of a message, in a queue whose last message has the id `last`.
    fn of(id: MessageId, last: MessageId) -> Self {
        // Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4): ids in a row spread
        // evenly, so that a short file sees each kind too.
        match (id, (id.unsigned_abs().wrapping_mul(0x9E37_79B9_7F4A_7C15)) >> 58) {
            (KILLS_ONCE, _) => Self::KillsOnce,
            (id, _) if id > KILLS_ONCE && id == last - KILLER_FROM_END => Self::KillsAlways,
            (_, 1..=3) => Self::FailsAlways,
            (_, 15..=16) => Self::FailsForGood,
            (_, 21..=23) => Self::DefersOnce,
            (_, 30..=35) => Self::Fails(1),
            (_, 52..=54) => Self::Fails(2),
            _ => Self::Succeeds,
        }
    }
}

/// Runs a worker until standard input ends: it does when the demo is done, and also when the demo was killed.
pub(super) async fn work(global: &Global, pace: Duration) -> anyhow::Result<Exit> {
    let vtq = global.connect().await?;
    // All is sent before the first worker starts, so that they all see the same last message.
    let sent = vtq.queue(QUEUE)?.metrics(Exact::No).await?.sent_total.unwrap_or_default();
    let handler = handler_fn(move |message, _| handle(message, sent.cast_signed(), pace));
    let capsule = Capsule::new([QUEUE], handler).concurrency(SLOTS as usize);
    let worker = Worker::builder(&vtq).capsule(capsule).heartbeat(HEARTBEAT).build()?;
    worker.run(end_of_input()).await?;
    Ok(Exit::Done)
}

async fn end_of_input() {
    let (sender, receiver) = oneshot::channel::<()>();
    // A thread of its own, because the runtime waits at its end for a read that it has begun, and this one may
    // never end.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(sender);
    });
    let _ = receiver.await;
}

async fn handle(message: Message, last: MessageId, pace: Duration) -> Result<Outcome, Failure> {
    let id = message.id();
    let body: Value = message.decode()?;
    let event = body.get("event").and_then(Value::as_str).unwrap_or("message").to_owned();
    // Half the pace to one and a half of it.
    tokio::time::sleep(pace.mul_f64(0.5 + f64::from(id.rem_euclid(8) as u8) / 7.0)).await;
    match Role::of(id, last) {
        Role::Fails(times) if message.attempt <= times => Err(unavailable()),
        Role::FailsAlways => Err(unavailable()),
        Role::FailsForGood => Err(Failure::permanent(format!("tracker said 422: it knows no `{event}`"))
            .class("TrackerRefused")
            .code("422")),
        Role::DefersOnce if message.lease.read_ct == 1 => Ok(Outcome::Deferred {
            delay: Duration::from_millis(500),
            reason: Some("tracker said later".into()),
        }),
        Role::KillsOnce if message.lease.read_ct == 1 => die().await,
        Role::KillsAlways => die().await,
        _ => Ok(Outcome::Done),
    }
}

fn unavailable() -> Failure {
    Failure::new("tracker said 503")
        .class("TrackerUnavailable")
        .code("503")
        .detail("caused by: the tracker is down for maintenance")
}

/// Ends this process as the kernel does when memory runs out: no destructor runs, and nothing is reported.
async fn die() -> ! {
    tokio::time::sleep(BEFORE_THE_KILL).await;
    let _ = kill(Pid::this(), Signal::SIGKILL);
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_sees_every_role() {
        let count = |role| (1..=77).filter(|&id| Role::of(id, 77) == role).count();

        assert_eq!(count(Role::KillsOnce), 1);
        assert_eq!(count(Role::KillsAlways), 1);
        for role in [Role::FailsAlways, Role::FailsForGood, Role::DefersOnce, Role::Fails(1), Role::Fails(2)]
        {
            assert!((2..=9).contains(&count(role)), "{role:?}: {}", count(role));
        }
    }
}

//! The load: a task that sends all the time, and remembers which sends were acknowledged.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use vtq::{ConnectOptions, MessageId, Outgoing, Queue, SendOptions};

use crate::harness::Dice;
use crate::work::{Fate, Work};

/// A send that is answered later than this counts as not answered.
const LIMIT: Duration = Duration::from_secs(5);

/// A producer at work.
#[derive(Debug)]
pub(crate) struct Producer {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Sent>,
}

/// What it sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// The messages that the database said it has, and what becomes of them.
    pub(crate) acknowledged: HashMap<MessageId, Fate>,
    /// How many messages were in sends without an answer: each may be there or not.
    pub(crate) unanswered: usize,
}

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// How many messages at the least, whatever the fault does.
    pub(crate) least: usize,
    /// How long a run takes at the least, and how much longer at the most.
    pub(crate) takes_ms: (u64, u64),
    /// The mean pause between two sends of some ten messages.
    pub(crate) pause_ms: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self { least: 1000, takes_ms: (0, 20), pause_ms: 20 }
    }
}

impl Producer {
    /// Starts to send to queue `q` of the database at `url`.
    pub(crate) fn start(url: &str, load: Load, mut dice: Dice) -> Self {
        let options = ConnectOptions::from_url(url).unwrap().statement_limit(LIMIT).connect_timeout(LIMIT);
        let queue =
            options.pool_timeout(LIMIT).application_name("producer").lazy().unwrap().queue("q").unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let task = tokio::spawn(async move {
            let mut sent = Sent::default();
            while !over.load(Ordering::Relaxed) || sent.acknowledged.len() < load.least {
                send(&queue, load, &mut dice, &mut sent).await;
                tokio::time::sleep(Duration::from_millis(dice.below(2 * load.pause_ms + 1))).await;
            }
            sent
        });
        Self { is_over, task }
    }

    /// Ends once enough is sent.
    pub(crate) async fn finish(self) -> Sent {
        self.is_over.store(true, Ordering::Relaxed);
        let limit = Duration::from_secs(120);
        tokio::time::timeout(limit, self.task).await.expect("the producer ends").unwrap()
    }
}

async fn send(queue: &Queue, load: Load, dice: &mut Dice, sent: &mut Sent) {
    let works: Vec<Work> = (0..1 + dice.below(20))
        .map(|_| {
            let fate = match dice.below(100) {
                0 => Fate::Permanent,
                1..4 => Fate::Retry,
                _ => Fate::Done,
            };
            Work { takes_ms: load.takes_ms.0 + dice.below(load.takes_ms.1 + 1), fate }
        })
        .collect();
    let batch: Vec<Outgoing> = works.iter().map(|work| Outgoing::new(work).unwrap()).collect();
    match queue.send_batch(&batch, &SendOptions::new()).await {
        Ok(ids) => sent.acknowledged.extend(ids.into_iter().zip(works.iter().map(|work| work.fate))),
        Err(error) => {
            assert!(error.is_retryable(), "a send failed for good: {error:?}");
            sent.unanswered += works.len();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Sends one message, which is done at once.
pub(crate) async fn send_one(client: &Client) -> MessageId {
    let work = Work { takes_ms: 1, fate: Fate::Done };
    let work = serde_json::to_value(work).unwrap();
    client.query_one("SELECT vtq.send('q', $1)", &[&work]).await.unwrap().get(0)
}

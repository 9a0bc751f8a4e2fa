//! What the database says in the end. Nothing in here is counted by the demo itself.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde::Serialize;
use serde_json::{Map, Value};
use vtq::{Exact, MessageId};

use super::place::Place;

/// The facts of one run; also the answer of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    /// Messages sent, by the queue's metrics.
    pub(super) sent: u64,
    /// Messages in the archive.
    pub(super) handled: u64,
    /// Messages among the dead letters.
    pub(super) dead: u64,
    /// Messages still in the queue.
    pub(super) left: u64,
    /// Different messages in all tables together.
    pub(super) different: u64,
    /// Workers that left their row behind.
    pub(super) workers_died: u64,
    /// From the first send to the last settling.
    pub(super) elapsed_ms: u64,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) deliveries: Vec<Deliveries>,
    /// The deliveries of one message that failed and was handled in the end.
    pub(super) history: Option<History>,
    /// One dead letter's block.
    pub(super) dead_letter: Option<DeadLetter>,
    /// How many died for each reason.
    pub(super) dead_by_reason: BTreeMap<String, u64>,
}

/// What became of some messages.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) is_handled: bool,
    /// For the handled, on which way; for the dead, the reason.
    pub(super) how: String,
    pub(super) messages: u64,
    pub(super) such_as: MessageId,
}

/// The deliveries that ended alike.
#[derive(Debug, Serialize)]
pub(super) struct Deliveries {
    pub(super) outcome: String,
    pub(super) deliveries: u64,
    /// How long they held their messages, all together.
    pub(super) held_ms: u64,
    /// How long these messages had to wait afterwards.
    pub(super) waited_ms: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct History {
    pub(super) msg_id: MessageId,
    pub(super) event: Option<String>,
    pub(super) deliveries: Vec<Delivery>,
}

#[derive(Debug, Serialize)]
pub(super) struct Delivery {
    pub(super) read_ct: i32,
    pub(super) attempt: i32,
    pub(super) outcome: String,
    pub(super) started_after_ms: u64,
    pub(super) held_ms: u64,
    pub(super) waited_ms: Option<u64>,
    pub(super) why: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct DeadLetter {
    pub(super) msg_id: MessageId,
    pub(super) block: Map<String, Value>,
}

impl Facts {
    /// Asks the database.
    pub(super) async fn gather(place: &Place) -> anyhow::Result<Self> {
        let metrics = place.queue.metrics(Exact::Yes).await?;
        let (client, _notifications) = place.vtq.dedicated().await?.spawn();
        let totals = client.query_typed(include_str!("facts/totals.sql"), &[]).await?;
        let [totals] = &totals[..] else { anyhow::bail!("the totals are not one row") };
        let count = |column: &str| totals.get::<_, i64>(column).unsigned_abs();

        let outcomes = client.query_typed(include_str!("facts/outcomes.sql"), &[]).await?;
        let outcomes: Vec<Outcome> = outcomes
            .iter()
            .map(|row| Outcome {
                is_handled: row.get("is_handled"),
                how: row.get("how"),
                messages: row.get::<_, i64>("messages").unsigned_abs(),
                such_as: row.get("such_as"),
            })
            .collect();
        let deliveries = client.query_typed(include_str!("facts/deliveries.sql"), &[]).await?;
        let deliveries = deliveries
            .iter()
            .map(|row| Deliveries {
                outcome: row.get("outcome"),
                deliveries: row.get::<_, i64>("deliveries").unsigned_abs(),
                held_ms: ms(row.get("held")),
                waited_ms: ms(row.get("waited")),
            })
            .collect();
        let history = client.query_typed(include_str!("facts/history.sql"), &[]).await?;
        let history = history.first().map(|first| History {
            msg_id: first.get("msg_id"),
            event: first.get("event"),
            deliveries: history
                .iter()
                .map(|row| Delivery {
                    read_ct: row.get("read_ct"),
                    attempt: row.get("attempt"),
                    outcome: row.get("outcome"),
                    started_after_ms: ms(row.get("started_after")),
                    held_ms: ms(row.get("held")),
                    waited_ms: row.get::<_, Option<f64>>("waited").map(ms),
                    why: row.get("why"),
                })
                .collect(),
        });

        let dead = outcomes.iter().filter(|outcome| !outcome.is_handled);
        Ok(Self {
            sent: metrics.sent_total.unwrap_or_default(),
            handled: count("handled"),
            dead: count("dead"),
            left: count("live"),
            different: count("different"),
            workers_died: count("workers_died"),
            elapsed_ms: ms(totals.get("elapsed")),
            dead_by_reason: dead.map(|outcome| (outcome.how.clone(), outcome.messages)).collect(),
            dead_letter: dead_letter(place, &outcomes).await?,
            outcomes,
            deliveries,
            history,
        })
    }

    /// Makes sure that each message ended, and ended once.
    pub(super) fn check(&self, sent: usize) -> anyhow::Result<()> {
        let Self { handled, dead, left, different, .. } = self;
        ensure!(
            self.sent == sent as u64 && self.sent == handled + dead && *left == 0 && self.sent == *different,
            "the numbers do not add up: {sent} messages were sent and the queue counted {}, {handled} are \
             handled, {dead} dead, {left} still in the queue, and {different} of these are different messages",
            self.sent
        );
        Ok(())
    }
}

/// The one that says the most: it ran out of attempts and has an error; else the first there is.
async fn dead_letter(place: &Place, outcomes: &[Outcome]) -> anyhow::Result<Option<DeadLetter>> {
    let mut dead: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.is_handled).collect();
    dead.sort_by_key(|outcome| outcome.how != "attempts_exhausted");
    let Some(chosen) = dead.first() else { return Ok(None) };
    let Some(letter) = place.queue.dlq_show(chosen.such_as).await? else { return Ok(None) };
    let mut headers: Map<String, Value> = serde_json::from_str(letter.headers.get())?;
    let Some(Value::Object(block)) = headers.remove("vtq_dead_letter") else { return Ok(None) };
    Ok(Some(DeadLetter { msg_id: letter.id, block }))
}

fn ms(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1000.0).round() as u64
}

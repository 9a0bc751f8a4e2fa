//! What must be true at the end of every test.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio_postgres::Client;
use vtq::MessageId;

use crate::harness::{Stage, connect};
use crate::producer::{Producer, Sent};
use crate::work::Fate;

/// How long it may take until everything is settled, once the load has ended.
const LIMIT: Duration = Duration::from_secs(90);

/// What a fault may bring about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Doubles {
    /// No message runs twice at the same time.
    #[default]
    Never,
    /// A run may go on while another worker has the message: its worker could not know.
    Explained,
    /// Nothing is delivered twice, at no time.
    NoRedelivery,
}

/// Where the messages are in the end.
#[derive(Debug, Default)]
struct Whereabouts {
    archived: BTreeMap<MessageId, i64>,
    dead: BTreeMap<MessageId, String>,
    redelivered: i64,
}

impl Stage {
    /// Ends the load, waits until nothing is left, stops the workers, and checks everything.
    pub(crate) async fn verify(self, producer: Producer, doubles: Doubles) {
        let url = self.cluster.url();
        self.verify_at(&url, producer, doubles).await;
    }

    /// As [`verify`](Self::verify), in another database than the one that the test began with.
    pub(crate) async fn verify_at(self, url: &str, producer: Producer, doubles: Doubles) {
        let sent = producer.finish().await;
        self.verify_sent_at(url, sent, doubles).await;
    }

    /// As [`verify`](Self::verify), when the load has ended before.
    pub(crate) async fn verify_sent(self, sent: Sent, doubles: Doubles) {
        let url = self.cluster.url();
        self.verify_sent_at(&url, sent, doubles).await;
    }

    /// Waits until nothing is left to be done.
    pub(crate) async fn settled(&self, client: &Client) {
        let started = Instant::now();
        while number(client, "SELECT count(*) FROM vtq.q").await > 0 {
            if started.elapsed() > LIMIT {
                panic!("{}: after {LIMIT:?} the queue still has\n{}", self.name, left(client).await);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn verify_sent_at(mut self, url: &str, sent: Sent, doubles: Doubles) {
        let client = connect(url).await;
        self.settled(&client).await;
        let (mut lost, mut late, mut outages) = (0, 0, Vec::new());
        for worker in self.workers.drain(..) {
            outages.extend(worker.events.losses());
            let stopped = worker.stop().await;
            lost += stopped.lost;
            late += stopped.late;
        }
        let found = whereabouts(&client).await;
        let overlaps = self.runs.overlaps();
        eprintln!(
            "{}: {} acknowledged, {} unanswered, {} archived, {} dead, {} runs, {} redelivered, {} overlapping, \
             {lost} leases lost, {late} late, {} outages told{}",
            self.name,
            sent.acknowledged.len(),
            sent.unanswered,
            found.archived.len(),
            found.dead.len(),
            self.runs.len(),
            found.redelivered,
            overlaps.len(),
            outages.len(),
            self.notes.iter().map(|note| format!(", {note}")).collect::<String>(),
        );
        for (why, times) in tally(outages) {
            eprintln!("    {times} x {why}");
        }
        eprintln!("    deliveries that did not succeed: {}", not_done(&client).await);
        check_whereabouts(&sent, &found);
        match doubles {
            Doubles::Explained => {}
            Doubles::Never => assert!(overlaps.is_empty(), "ran twice at the same time: {overlaps:?}"),
            Doubles::NoRedelivery => {
                assert!(overlaps.is_empty(), "ran twice at the same time: {overlaps:?}");
                assert_eq!(found.redelivered, 0, "some messages were delivered again");
            }
        }
    }
}

fn tally(texts: Vec<String>) -> BTreeMap<String, usize> {
    texts.into_iter().fold(BTreeMap::new(), |mut counts, text| {
        *counts.entry(text).or_default() += 1;
        counts
    })
}

/// Each message that was acknowledged is in one place, once, and in the right one.
fn check_whereabouts(sent: &Sent, found: &Whereabouts) {
    let twice: Vec<_> = found.archived.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "archived more than once: {twice:?}");
    for (id, fate) in &sent.acknowledged {
        match (found.archived.contains_key(id), found.dead.get(id).map(String::as_str)) {
            (true, None) if *fate != Fate::Permanent => {}
            (false, Some("permanent_failure")) if *fate == Fate::Permanent => {}
            place => panic!("message {id}, {fate:?}: (archived, dead for) is {place:?}"),
        }
    }
    // What was sent without an answer may be there; nothing else may.
    let strangers = (found.archived.keys().chain(found.dead.keys()))
        .filter(|id| !sent.acknowledged.contains_key(id))
        .count();
    assert!(strangers <= sent.unanswered, "{strangers} messages that nobody sent");
}

/// The first messages that are left, and what `explain` says of them.
async fn left(client: &Client) -> String {
    let sql = "SELECT jsonb_pretty(vtq.explain('q', m.msg_id)) FROM vtq.q AS m ORDER BY m.msg_id LIMIT 3";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}

/// How often a delivery ended in which other way than done. One whose claim a crash undid has left no trace.
async fn not_done(client: &Client) -> String {
    let sql = "SELECT coalesce(string_agg(format('%s x %s', count, outcome), ', ' ORDER BY outcome), 'none') \
               FROM (SELECT outcome, count(*) FROM vtq.q_attempts GROUP BY outcome) AS o";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

async fn whereabouts(client: &Client) -> Whereabouts {
    let mut found = Whereabouts::default();
    // The retry that a message asks for is a delivery too, and no redelivery.
    let sql = "SELECT msg_id, count(*), (sum(read_ct - 1) - sum((message ->> 'fate' = 'retry')::int))::bigint \
               FROM vtq.q_archive GROUP BY msg_id";
    for row in client.query(sql, &[]).await.unwrap() {
        found.archived.insert(row.get(0), row.get(1));
        found.redelivered += row.get::<_, i64>(2).max(0);
    }
    let sql =
        "SELECT msg_id, headers -> 'vtq_dead_letter' ->> 'reason', (read_ct - 1)::bigint FROM vtq.q_dlq";
    for row in client.query(sql, &[]).await.unwrap() {
        found.dead.insert(row.get(0), row.get(1));
        found.redelivered += row.get::<_, i64>(2);
    }
    found
}

/// One number out of the database.
pub(crate) async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect("the database answers").get(0)
}

//! Groups: many small ones, and one huge one beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

use super::percentiles;
use crate::args::Args;
use crate::cluster::{Bench, connect};
use crate::figure::{Figures, Metric, Section};
use crate::peer::{OnAck, Peer};

const READERS: usize = 8;
const QTY: i32 = 10;
const EACH: u32 = 100;
/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(1800);

/// A small group has a hundred messages; the huge one, where there is one, as many as all of the others together.
const CASES: [(&str, bool); 2] = [("small groups", false), ("a huge group beside small ones", true)];

pub(super) fn section(args: &Args) -> Section {
    let messages = args.backlog();
    Section {
        title: "Groups",
        about: format!(
            "{messages} messages wait: groups of {EACH}, sent in turn; or half of them one group, sent first. \
             {READERS} sessions read {QTY} at once and ack them. The case ends when the small groups are done. Times \
             are those of the reads, with the admission of what was sent. An empty answer is one that came while more \
             messages had been due since before the read than all sessions together could have in hand."
        ),
        ..Section::default()
    }
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    if !args.wants(Peer::VtqSql) {
        return Ok(());
    }
    for (case, has_huge) in CASES {
        let values = drain(bench, args, has_huge).await.with_context(|| case.to_owned())?;
        figures.add(case, Peer::VtqSql, values);
    }
    Ok(())
}

/// What the readers have seen.
#[derive(Debug, Default)]
struct Seen {
    done: AtomicU64,
    empty: AtomicU64,
}

async fn drain(bench: &Bench, args: &Args, has_huge: bool) -> Result<Vec<(Metric, f64)>> {
    let url = bench.fresh(Peer::VtqSql).await?;
    Peer::VtqSql.set_on_ack(&url, OnAck::Delete).await?;
    let small = u64::from(fill(&url, args.backlog(), has_huge).await?);
    let seen = Arc::new(Seen::default());
    let started = Instant::now();
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        readers.spawn(read(url.clone(), seen.clone(), small, started));
    }
    let mut times = Vec::new();
    while let Some(ended) = readers.join_next().await {
        times.extend(ended??);
    }
    let took = started.elapsed().as_secs_f64();
    let mut values = vec![(Metric::Rate, seen.done.load(Ordering::Relaxed) as f64 / took)];
    values.extend(percentiles(times));
    values.push((Metric::EmptyAnswers, seen.empty.load(Ordering::Relaxed) as f64));
    Ok(values)
}

/// Sends the messages; returns how many are of small groups.
async fn fill(url: &str, messages: u32, has_huge: bool) -> Result<u32> {
    let client = connect(url).await?;
    let huge = if has_huge { messages / 2 } else { 0 };
    let groups = ((messages - huge) / EACH).max(1);
    let small = groups * EACH;
    let send = |count: u32, key: String| {
        format!(
            "SELECT count(*) FROM vtq.send_batch('bench', \
             ARRAY(SELECT to_jsonb({key}) FROM generate_series(1, {count}) AS n), \
             group_keys => ARRAY(SELECT {key} FROM generate_series(1, {count}) AS n))"
        )
    };
    const BATCH: u32 = 50_000;
    let mut left = huge;
    while left > 0 {
        client.batch_execute(&send(left.min(BATCH), "'huge'::text".into())).await?;
        left -= left.min(BATCH);
    }
    let mut left = small;
    while left > 0 {
        client.batch_execute(&send(left.min(BATCH), format!("'small ' || n % {groups}"))).await?;
        left -= left.min(BATCH);
    }
    client.batch_execute("VACUUM ANALYZE").await?;
    Ok(small)
}

async fn read(url: String, seen: Arc<Seen>, small: u64, started: Instant) -> Result<Vec<Duration>> {
    let client = connect(&url).await?;
    let read = client
        .prepare("SELECT msg_id, read_ct, message <> '\"huge\"' FROM vtq.read('bench', '5 min', $1)")
        .await?;
    let ack = client.prepare("SELECT count(*) FROM vtq.ack('bench', $1, $2)").await?;
    let due = client
        .prepare(
            "SELECT count(*) > $2::bigint FROM (SELECT FROM vtq.bench WHERE priority = 0 AND vt <= clock_timestamp() \
             AND ready_at <= clock_timestamp() - make_interval(secs => $1) LIMIT $2::bigint + 1) AS due",
        )
        .await?;
    let in_hand = i64::from(QTY) * READERS as i64;
    let mut times = Vec::new();
    while seen.done.load(Ordering::Relaxed) < small {
        if started.elapsed() > LIMIT {
            bail!("only {} of {small} messages within {LIMIT:?}", seen.done.load(Ordering::Relaxed));
        }
        let asked = Instant::now();
        let rows = client.query(&read, &[&QTY]).await?;
        times.push(asked.elapsed());
        if rows.is_empty() {
            let since = asked.elapsed().as_secs_f64();
            if client.query_one(&due, &[&since, &in_hand]).await?.get(0) {
                seen.empty.fetch_add(1, Ordering::Relaxed);
            }
            continue;
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let read_cts: Vec<i32> = rows.iter().map(|row| row.get(1)).collect();
        client.execute(&ack, &[&ids, &read_cts]).await?;
        let count = rows.iter().filter(|row| row.get::<_, bool>(2)).count();
        seen.done.fetch_add(count as u64, Ordering::Relaxed);
    }
    Ok(times)
}

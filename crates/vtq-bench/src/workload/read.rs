//! A read of one message behind a backlog that is not due.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::percentiles;
use crate::args::Args;
use crate::backlog::Backlog;
use crate::body::Body;
use crate::client_loop::{Sender, Verbs};
use crate::cluster::{Bench, connect};
use crate::figure::{Figures, Metric, Ratio, Section};
use crate::peer::{OnAck, Peer, PgmqSql, VtqSql};

const PEERS: [Peer; 2] = [Peer::VtqSql, Peer::Pgmq];
const BACKLOGS: [Backlog; 3] = [Backlog::Nothing, Backlog::Delayed, Backlog::FailedOnce];

pub(super) fn section(args: &Args) -> Section {
    let ratio =
        |of: Backlog, peer| Ratio::new(Metric::P50, (of.name(), peer), (Backlog::Nothing.name(), peer));
    let ratios = PEERS
        .into_iter()
        .flat_map(|peer| BACKLOGS[1..].iter().map(move |backlog| ratio(*backlog, peer)))
        .collect();
    Section {
        title: "A read behind a backlog",
        about: format!(
            "One message is sent, read and deleted, over and over, while {} others lie in the queue that are not due: \
             delayed by a day, or failed once with a day to wait. The time is that of the read alone, as the client \
             sees it. It commits without waiting for the disk, so that the disk does not hide the difference.",
            args.backlog()
        ),
        ratios,
        ..Section::default()
    }
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    for backlog in BACKLOGS {
        for peer in PEERS.into_iter().filter(|peer| args.wants(*peer)) {
            let url = backlog.database(bench, peer, args.backlog()).await?;
            let values = match peer {
                Peer::Pgmq => read_one::<PgmqSql>(args, &url).await,
                _ => read_one::<VtqSql>(args, &url).await,
            };
            let values = values.with_context(|| format!("{}, {}", backlog.name(), peer.name()))?;
            figures.add(backlog.name(), peer, values);
        }
    }
    Ok(())
}

async fn read_one<V: Verbs>(args: &Args, url: &str) -> Result<Vec<(Metric, f64)>> {
    let sender = Sender::<V>::connect(url).await?;
    let client = connect(url).await?;
    client.batch_execute("SET synchronous_commit = off").await?;
    let mut verbs = V::prepare(client, OnAck::Delete, false).await?;
    let mut times = Vec::new();
    let started = Instant::now();
    while started.elapsed() < args.span() {
        sender.send(Body::batch(0, 1)).await?;
        let asked = Instant::now();
        let taken = verbs.read(1).await?;
        times.push(asked.elapsed());
        ensure!(taken.len() == 1, "a read gave {} messages, not the one that was sent", taken.len());
        verbs.settle(&[(taken[0].id, taken[0].read_ct)]).await?;
    }
    Ok(percentiles(times).to_vec())
}

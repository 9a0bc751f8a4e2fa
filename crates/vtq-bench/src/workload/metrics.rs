//! The metrics of a queue with many messages.

use std::time::Instant;

use anyhow::Result;

use crate::args::Args;
use crate::backlog::Backlog;
use crate::cluster::{Bench, connect};
use crate::figure::{Figures, Metric, Ratio, Section};
use crate::peer::Peer;

const CASES: [(Peer, &str); 2] =
    [(Peer::VtqSql, "SELECT * FROM vtq.metrics_all()"), (Peer::Pgmq, "SELECT * FROM pgmq.metrics_all()")];
const TIMES: usize = 5;

pub(super) fn section(args: &Args) -> Section {
    Section {
        title: "Metrics of a full queue",
        about: format!(
            "`metrics_all` of each, the median of {TIMES} calls, with {} ready messages in the one queue.",
            args.backlog()
        ),
        ratios: vec![Ratio::new(Metric::Time, ("", Peer::VtqSql), ("", Peer::Pgmq))],
        ..Section::default()
    }
}

pub(super) async fn measure(bench: &Bench, args: &Args, figures: &mut Figures) -> Result<()> {
    for (peer, sql) in CASES.into_iter().filter(|(peer, _)| args.wants(*peer)) {
        let url = Backlog::Ready.database(bench, peer, args.backlog()).await?;
        let client = connect(&url).await?;
        let statement = client.prepare(sql).await?;
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let asked = Instant::now();
            client.query(&statement, &[]).await?;
            times.push(asked.elapsed());
        }
        times.sort_unstable();
        figures.add("", peer, vec![(Metric::Time, times[TIMES / 2].as_secs_f64() * 1000.0)]);
    }
    Ok(())
}

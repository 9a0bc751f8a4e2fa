//! `vtq lint`: what the settings of queues say against each other.

use serde::Serialize;
use vtq::{Exact, Finding, Severity, TimeToDeadLetter};

use crate::args::Global;
use crate::args::lint::LintArgs;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, Tone, millis};

/// A queue, in JSON.
#[derive(Serialize)]
struct Document<'a> {
    queue: &'a str,
    waits_least_ms: u64,
    waits_expected_ms: u64,
    waits_most_ms: u64,
    worst_ms: Option<u64>,
    findings: Vec<DocumentFinding<'a>>,
}

#[derive(Serialize)]
struct DocumentFinding<'a> {
    severity: &'static str,
    setting: &'a str,
    says: &'a str,
}

struct Linted {
    queue: String,
    time: TimeToDeadLetter,
    findings: Vec<Finding>,
}

pub(super) async fn run(global: &Global, output: Output, args: &LintArgs) -> anyhow::Result<Exit> {
    let vtq = global.connect().await?;
    let names = match &args.name {
        Some(name) => vec![name.as_str().to_owned()],
        None => vtq.metrics_all(Exact::No).await?.into_iter().map(|queue| queue.queue).collect(),
    };
    let mut linted = Vec::new();
    for name in names {
        let queue = vtq.queue(&name)?;
        let findings = queue.lint(args.drain, args.deadline).await?;
        linted.push(Linted { queue: name, time: queue.time_to_dead_letter().await?, findings });
    }
    if output.is_json() {
        output.json(&linted.iter().map(document).collect::<Vec<_>>())?;
    } else if linted.is_empty() {
        output.remark("there are no queues: create one with: vtq queue create NAME");
    } else {
        output.table(table(&linted))?;
    }
    let worst = linted.iter().flat_map(|queue| &queue.findings).map(|finding| finding.severity).max();
    Ok(match worst {
        Some(Severity::Error) => Exit::Failed,
        Some(Severity::Warning) | None => Exit::Nothing,
        Some(Severity::Note) => Exit::Done,
    })
}

fn table(linted: &[Linted]) -> Table {
    let mut table = Table::new(["queue", "severity", "setting", "says"]);
    for queue in linted {
        for finding in &queue.findings {
            let (name, tone) = severity(finding.severity);
            table.row([
                Cell::text(&queue.queue),
                Cell::text(name).tone(tone),
                Cell::text(&finding.setting),
                Cell::text(&finding.says),
            ]);
        }
    }
    table
}

fn severity(severity: Severity) -> (&'static str, Tone) {
    match severity {
        Severity::Error => ("error", Tone::Bad),
        Severity::Warning => ("warning", Tone::Notable),
        Severity::Note => ("note", Tone::Faint),
    }
}

fn document(queue: &Linted) -> Document<'_> {
    Document {
        queue: &queue.queue,
        waits_least_ms: millis(queue.time.waits_least),
        waits_expected_ms: millis(queue.time.waits_expected),
        waits_most_ms: millis(queue.time.waits_most),
        worst_ms: queue.time.worst.map(millis),
        findings: queue
            .findings
            .iter()
            .map(|finding| DocumentFinding {
                severity: severity(finding.severity).0,
                setting: &finding.setting,
                says: &finding.says,
            })
            .collect(),
    }
}

//! What a workload gives: measured values, and what to compare.

use std::io::Write;

use crate::peer::Peer;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Metric {
    Rate,
    CpuPerMessage,
    WalPerMessage,
    CpuPercent,
    /// Server CPU less what the same sends took while nobody read.
    CpuWithoutSends,
    P50,
    P99,
    TableBytes,
    Memory,
    Time,
    Notifies,
    EmptyAnswers,
}

impl Metric {
    /// The head of its column, with the unit.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Self::Rate => "messages/s",
            Self::CpuPerMessage => "server CPU, µs/message",
            Self::WalPerMessage => "WAL, bytes/message",
            Self::CpuPercent => "server CPU, % of a core",
            Self::CpuWithoutSends => "less that of the sends alone, % of a core",
            Self::P50 => "p50, ms",
            Self::P99 => "p99, ms",
            Self::TableBytes => "table, MB",
            Self::Memory => "memory, MB",
            Self::Time => "time, ms",
            Self::Notifies => "NOTIFYs",
            Self::EmptyAnswers => "empty answers",
        }
    }
}

/// One measurement.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// The case within the workload, such as "delete on ack".
    pub(crate) case: String,
    /// Whose it is.
    pub(crate) who: &'static str,
    pub(crate) values: Vec<(Metric, f64)>,
}

impl Figure {
    pub(crate) fn new(case: impl Into<String>, who: impl Into<Who>, values: Vec<(Metric, f64)>) -> Self {
        Self { case: case.into(), who: who.into().0, values }
    }
}

/// The measurements of one run of a workload; each is told as soon as it is made.
#[derive(Debug)]
pub(crate) struct Figures {
    run: u32,
    all: Vec<Figure>,
}

impl Figures {
    pub(crate) fn new(run: u32) -> Self {
        Self { run, all: Vec::new() }
    }

    pub(crate) fn add(&mut self, case: impl Into<String>, who: impl Into<Who>, values: Vec<(Metric, f64)>) {
        let figure = Figure::new(case, who, values);
        let values: Vec<String> =
            figure.values.iter().map(|(metric, value)| format!("{} {value:.2}", metric.head())).collect();
        let Figure { case, who, .. } = &figure;
        let _ = writeln!(std::io::stderr(), "run {}: {case}, {who}: {}", self.run, values.join("; "));
        self.all.push(figure);
    }

    pub(crate) fn into_vec(self) -> Vec<Figure> {
        self.all
    }
}

/// A peer, or something that is none, such as the handlers alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who(pub(crate) &'static str);

impl From<Peer> for Who {
    fn from(peer: Peer) -> Self {
        Self(peer.name())
    }
}

/// A ratio to show: of a metric, one measurement to another of the same run.
#[derive(Debug, Clone)]
pub(crate) struct Ratio {
    pub(crate) metric: Metric,
    pub(crate) of: (String, &'static str),
    pub(crate) to: (String, &'static str),
}

impl Ratio {
    pub(crate) fn new(
        metric: Metric,
        of: (impl Into<String>, impl Into<Who>),
        to: (impl Into<String>, impl Into<Who>),
    ) -> Self {
        Self { metric, of: (of.0.into(), of.1.into().0), to: (to.0.into(), to.1.into().0) }
    }
}

/// A workload's part of the page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    pub(crate) title: &'static str,
    /// What was done, in a few sentences.
    pub(crate) about: String,
    /// Of each run, its figures.
    pub(crate) runs: Vec<Vec<Figure>>,
    pub(crate) ratios: Vec<Ratio>,
}

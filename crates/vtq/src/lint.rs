//! What the settings of a queue amount to: contradictions, the way to the dead letters, what a backoff does to many.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use crate::call::{self, Param, column};
use crate::connect::Vtq;
use crate::error::Result;
use crate::name::QueueName;
use crate::payload;
use crate::wire::{Interval, Json};

/// One thing to know about the settings of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The option that it is about.
    pub setting: String,
    /// One sentence with the settings and their values.
    pub says: String,
}

/// How bad a [`Finding`] is; the later, the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A fact.
    Note,
    /// Allowed, and doubtful.
    Warning,
    /// Two settings contradict each other. A queue that is created or changed with them is refused.
    Error,
}

/// How long a message that always fails takes from its first run to the dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeToDeadLetter {
    /// All backoffs together, at the least.
    pub waits_least: Duration,
    /// All backoffs together, on average.
    pub waits_expected: Duration,
    /// All backoffs together, at the most.
    pub waits_most: Duration,
    /// The longest waits, and every run as long as the timeout lets it; `None` where there is no timeout.
    pub worst: Option<Duration>,
}

/// What is to be simulated of a backoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Simulation {
    failures: u16,
    runs: u32,
    messages: Option<u32>,
}

/// What a simulated backoff does after one failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimulatedFailure {
    /// Which failure; 1 is the first.
    pub failure: u16,
    /// The wait after it: the least, the 1st, 50th and 99th percentile, the most.
    pub wait: [Duration; 5],
    /// The time since the first failure when the message is due again: the 1st, 50th and 99th percentile.
    pub since: [Duration; 3],
    /// The most messages that come back within one second.
    pub peak_1s: u64,
    /// The most messages that come back within a tenth of a second.
    pub peak_100ms: u64,
}

impl Simulation {
    /// Starts with the defaults: six failures in a row of 10,000 messages.
    pub fn new() -> Self {
        Self { failures: 6, runs: 10_000, messages: None }
    }

    /// Sets how many failures in a row, 1 to 1000.
    pub fn failures(mut self, failures: u16) -> Self {
        self.failures = failures;
        self
    }

    /// Sets how many messages are simulated, 1 to 1,000,000.
    pub fn runs(mut self, runs: u32) -> Self {
        self.runs = runs;
        self
    }

    /// Sets how many messages fail together, for the peaks. Default: as many as are simulated.
    pub fn messages(mut self, messages: u32) -> Self {
        self.messages = Some(messages);
        self
    }
}

impl Default for Simulation {
    fn default() -> Self {
        Self::new()
    }
}

impl Vtq {
    /// Simulates what a backoff does to many messages that fail together: one answer for each failure.
    ///
    /// The policy is as it stands in SQL; what it leaves out is the default's. Ten million waits at the most.
    ///
    /// # SQL
    /// `sql/functions/vtq.simulate_backoff.sql`
    pub async fn simulate_backoff(
        &self,
        policy: &Map<String, Value>,
        simulation: Simulation,
    ) -> Result<Vec<SimulatedFailure>> {
        let client = self.client().await?;
        client.bounded("simulate a backoff", simulate_backoff(&*client, policy, simulation)).await
    }
}

/// Looks for contradictions and doubts.
pub(crate) async fn lint<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    drain: Option<Duration>,
    deadline: Option<Duration>,
) -> Result<Vec<Finding>> {
    let (drain, deadline) = (drain.map(Interval), deadline.map(Interval));
    let params: [Param<'_>; 3] =
        [(&queue.as_str(), Type::TEXT), (&drain, Type::INTERVAL), (&deadline, Type::INTERVAL)];
    let what = format!("lint queue `{queue}`");
    let rows = call::rows(client, &what, crate::sql::LINT, &params).await?;
    let finding = |row| {
        let severity: String = column(row, 0, &what)?;
        Ok(Finding {
            severity: match severity.as_str() {
                "error" => Severity::Error,
                "warning" => Severity::Warning,
                _ => Severity::Note,
            },
            setting: column(row, 1, &what)?,
            says: column(row, 2, &what)?,
        })
    };
    rows.iter().map(finding).collect()
}

/// Works out the way to the dead letters.
pub(crate) async fn time_to_dead_letter<C: GenericClient>(
    client: &C,
    queue: &QueueName,
) -> Result<TimeToDeadLetter> {
    let params: [Param<'_>; 1] = [(&queue.as_str(), Type::TEXT)];
    let what = format!("work out how long messages of queue `{queue}` take to the dead letters");
    let row = call::row(client, &what, crate::sql::TIME_TO_DLQ, &params).await?;
    let length = |index| column::<Interval>(&row, index, &what).map(|Interval(length)| length);
    Ok(TimeToDeadLetter {
        waits_least: length(0)?,
        waits_expected: length(1)?,
        waits_most: length(2)?,
        worst: column::<Option<Interval>>(&row, 3, &what)?.map(|Interval(length)| length),
    })
}

/// Simulates a backoff.
async fn simulate_backoff<C: GenericClient>(
    client: &C,
    policy: &Map<String, Value>,
    simulation: Simulation,
) -> Result<Vec<SimulatedFailure>> {
    let policy = payload::encode("policy", policy)?;
    let (failures, runs) = (i32::from(simulation.failures), i64::from(simulation.runs));
    let runs = i32::try_from(runs).unwrap_or(i32::MAX);
    let messages = simulation.messages.map(i64::from);
    let params: [Param<'_>; 4] = [
        (&Json(&policy), Type::JSONB),
        (&failures, Type::INT4),
        (&runs, Type::INT4),
        (&messages, Type::INT8),
    ];
    let what = "simulate a backoff";
    let rows = call::rows(client, what, crate::sql::SIMULATE_BACKOFF, &params).await?;
    let failure = |row| {
        let length = |index| column::<Interval>(row, index, what).map(|Interval(length)| length);
        let count = |index| column::<i64>(row, index, what).map(|count| count.max(0).unsigned_abs());
        Ok(SimulatedFailure {
            failure: u16::try_from(column::<i32>(row, 0, what)?).unwrap_or(u16::MAX),
            wait: [length(1)?, length(2)?, length(3)?, length(4)?, length(5)?],
            since: [length(6)?, length(7)?, length(8)?],
            peak_1s: count(9)?,
            peak_100ms: count(10)?,
        })
    };
    rows.iter().map(failure).collect()
}

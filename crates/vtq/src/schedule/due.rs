//! Firing what is due: which ticks are sent, which were missed, and what the database is told.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};

use super::{Cron, Missed};
use crate::call::{self, Param, column};
use crate::error::Result;
use crate::message::MessageId;
use crate::sql;
use crate::wire::Interval;

/// The most ticks that one step looks at, so that a plan in seconds that was left alone for a year holds up nobody.
const MOST_SEEN: usize = 2000;
/// The most messages of one transaction.
const MOST_SENT: usize = 1000;

/// A schedule that a worker has to look at, now or soon.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    /// The database's clock.
    at: DateTime<Utc>,
    /// How long until it is due; nothing when it is.
    pub(crate) due_in: Duration,
    pub(crate) name: String,
    pub(crate) revision: i64,
    cron: String,
    timezone: String,
    missed: Missed,
    grace: TimeDelta,
    /// The first tick that was neither sent nor skipped; `None`: it has not been worked out yet.
    pub(crate) next_at: Option<DateTime<Utc>>,
}

/// A tick that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fired {
    pub(crate) tick_at: DateTime<Utc>,
    pub(crate) id: MessageId,
}

/// What is to be done about a schedule that is due.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    ticks: Vec<DateTime<Utc>>,
    skipped: i64,
    next_at: Option<DateTime<Utc>>,
}

impl Due {
    fn read(row: &Row) -> Result<Self> {
        let what = "look for schedules";
        let missed: String = column(row, 6, what)?;
        Ok(Self {
            at: column(row, 0, what)?,
            due_in: column::<Interval>(row, 1, what)?.0,
            name: column(row, 2, what)?,
            revision: column(row, 3, what)?,
            cron: column(row, 4, what)?,
            timezone: column(row, 5, what)?,
            missed: Missed::from_sql(&missed, column(row, 7, what)?),
            grace: TimeDelta::from_std(column::<Interval>(row, 8, what)?.0).unwrap_or(TimeDelta::MAX),
            next_at: column(row, 9, what)?,
        })
    }

    /// Decides about the ticks up to the database's clock.
    ///
    /// Those within the grace are sent, each; those before it were missed. A step that does not see all of them passes
    /// over what is too old in any case, and the next step goes on.
    fn step(&self, cron: &Cron) -> Step {
        let Some(first) = self.next_at else {
            return Step { ticks: Vec::new(), skipped: 0, next_at: cron.next_after(self.at) };
        };
        let mut ticks = Vec::new();
        let mut next_at = Some(first);
        while let Some(tick) = next_at.filter(|tick| *tick <= self.at && ticks.len() < MOST_SEEN) {
            ticks.push(tick);
            next_at = cron.next_after(tick);
        }
        let sees_all = next_at.is_none_or(|next| next > self.at);
        let missed = ticks.iter().take_while(|tick| **tick < self.at - self.grace).count();
        let is_all_missed = missed == ticks.len();
        let made_up_for = match self.missed {
            Missed::Skip => 0,
            // One that is sent in time stands for those before it.
            Missed::Once => usize::from(is_all_missed),
            Missed::All { cap } => missed.min(cap.into()),
        };
        let skipped = missed - made_up_for;
        ticks.drain(..skipped);
        if is_all_missed && !sees_all {
            next_at = ticks.first().copied().or(next_at);
            ticks.clear();
        } else if ticks.len() > MOST_SENT {
            next_at = Some(ticks[MOST_SENT]);
            ticks.truncate(MOST_SENT);
        }
        Step { ticks, skipped: i64::try_from(skipped).unwrap_or(i64::MAX), next_at }
    }

    /// Sends what is to be sent, and moves the plan on. Nothing is sent when another worker was first.
    pub(crate) async fn fire<C: GenericClient>(&self, client: &C) -> Result<Vec<Fired>> {
        let what = format!("fire schedule `{}`", self.name);
        let cron = Cron::new(&self.cron, &self.timezone)?;
        let step = self.step(&cron);
        let params: [Param<'_>; 6] = [
            (&self.name, Type::TEXT),
            (&self.revision, Type::INT8),
            (&self.next_at, Type::TIMESTAMPTZ),
            (&step.ticks, Type::TIMESTAMPTZ_ARRAY),
            (&step.next_at, Type::TIMESTAMPTZ),
            (&step.skipped, Type::INT8),
        ];
        let rows = call::rows(client, &what, sql::FIRE, &params).await?;
        let fired = |row: &Row| Ok(Fired { tick_at: column(row, 0, &what)?, id: column(row, 1, &what)? });
        rows.iter().map(fired).collect()
    }

    /// Writes down why it cannot be fired.
    pub(crate) async fn failed<C: GenericClient>(
        &self,
        client: &C,
        error: &str,
        retry_in: Duration,
    ) -> Result<()> {
        let params: [Param<'_>; 4] = [
            (&self.name, Type::TEXT),
            (&self.revision, Type::INT8),
            (&error, Type::TEXT),
            (&Interval(retry_in), Type::INTERVAL),
        ];
        call::rows(client, "write down why a schedule fails", sql::SCHEDULE_FAILED, &params).await.map(|_| ())
    }
}

/// Looks for the schedules that are due, and the ones after them; or for one by its name, due or not.
pub(crate) async fn due<C: GenericClient>(client: &C, qty: i32, only: Option<&str>) -> Result<Vec<Due>> {
    let params: [Param<'_>; 2] = [(&qty, Type::INT4), (&only, Type::TEXT)];
    let rows = call::rows(client, "look for schedules", sql::DUE_SCHEDULES, &params).await?;
    rows.iter().map(Due::read).collect()
}

#[cfg(test)]
mod tests;

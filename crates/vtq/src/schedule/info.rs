//! Looking at schedules.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use tokio_postgres::{GenericClient, Row};

use super::Missed;
use crate::call::{self, column};
use crate::error::Result;
use crate::message::MessageId;
use crate::sql;
use crate::wire::{Interval, RawJson};

/// A schedule, and how far it has come.
///
/// `Debug` shows neither the message nor its headers.
#[derive(Clone)]
#[non_exhaustive]
pub struct ScheduleInfo {
    /// Its name.
    pub name: String,
    /// Whether it sends, and if not, why.
    pub state: ScheduleState,
    /// The expression.
    pub cron: String,
    /// The time zone in which the expression is read.
    pub timezone: String,
    /// The queue that it sends to.
    pub queue: String,
    /// The tick to come; `None`: there is none, or no worker has worked it out yet.
    pub next_at: Option<DateTime<Utc>>,
    /// The last tick that was sent.
    pub last_tick_at: Option<DateTime<Utc>>,
    /// When it last sent, by a tick or by hand.
    pub last_sent_at: Option<DateTime<Utc>>,
    /// The message that it sent then.
    pub last_id: Option<MessageId>,
    /// How many messages it has sent.
    pub sent_total: u64,
    /// How many ticks were missed and not made up for.
    pub skipped_total: u64,
    /// What becomes of ticks that nobody sent in time.
    pub missed: Missed,
    /// How late a tick may be sent that does not count as missed.
    pub grace: Duration,
    /// When its pause ends, if it ends by itself.
    pub paused_until: Option<DateTime<Utc>>,
    /// Why it is paused.
    pub pause_reason: Option<String>,
    /// Why it cannot send.
    pub error: Option<String>,
    /// Since when.
    pub error_at: Option<DateTime<Utc>>,
    /// The headers of its messages, as JSON text; `null` where it has none.
    pub headers: Box<RawValue>,
    /// Its message, as JSON text.
    pub body: Box<RawValue>,
}

/// Whether a schedule sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleState {
    /// It does.
    Active,
    /// It is paused.
    Paused,
    /// It cannot; [`ScheduleInfo::error`] says why. It is tried again.
    Failing,
    /// No worker has looked at it yet.
    New,
    /// No tick will come.
    Ended,
}

impl fmt::Display for ScheduleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Failing => "failing",
            Self::New => "new",
            Self::Ended => "ended",
        })
    }
}

impl fmt::Debug for ScheduleInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleInfo")
            .field("name", &self.name)
            .field("state", &self.state)
            .field("cron", &self.cron)
            .field("timezone", &self.timezone)
            .field("queue", &self.queue)
            .field("next_at", &self.next_at)
            .field("last_tick_at", &self.last_tick_at)
            .field("sent_total", &self.sent_total)
            .field("skipped_total", &self.skipped_total)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

/// All schedules, in order of name.
pub(super) async fn list<C: GenericClient>(client: &C) -> Result<Vec<ScheduleInfo>> {
    let what = "list the schedules";
    let null = || RawJson(RawValue::NULL.to_owned());
    let schedule = |row: &Row| {
        let state: String = column(row, 1, what)?;
        let missed: String = column(row, 11, what)?;
        Ok(ScheduleInfo {
            name: column(row, 0, what)?,
            state: match state.as_str() {
                "active" => ScheduleState::Active,
                "paused" => ScheduleState::Paused,
                "new" => ScheduleState::New,
                "ended" => ScheduleState::Ended,
                _ => ScheduleState::Failing,
            },
            cron: column(row, 2, what)?,
            timezone: column(row, 3, what)?,
            queue: column(row, 4, what)?,
            next_at: column(row, 5, what)?,
            last_tick_at: column(row, 6, what)?,
            last_sent_at: column(row, 7, what)?,
            last_id: column(row, 8, what)?,
            sent_total: column::<i64>(row, 9, what)?.unsigned_abs(),
            skipped_total: column::<i64>(row, 10, what)?.unsigned_abs(),
            missed: Missed::from_sql(&missed, column(row, 12, what)?),
            grace: column::<Interval>(row, 13, what)?.0,
            paused_until: column(row, 14, what)?,
            pause_reason: column(row, 15, what)?,
            error: column(row, 16, what)?,
            error_at: column(row, 17, what)?,
            headers: column::<Option<RawJson>>(row, 18, what)?.unwrap_or_else(null).0,
            body: column::<RawJson>(row, 19, what)?.0,
        })
    };
    call::rows(client, what, sql::SCHEDULE_LIST, &[]).await?.iter().map(schedule).collect()
}

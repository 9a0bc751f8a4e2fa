//! Schedules: messages that are sent by a cron expression.

mod cron;
mod due;
mod info;

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

pub use self::cron::Cron;
pub(crate) use self::due::{Due, due};
pub use self::info::{ScheduleInfo, ScheduleState};
use crate::admin::Created;
use crate::backoff::Backoff;
use crate::call::{self, Param};
use crate::connect::Vtq;
use crate::error::Result;
use crate::message::MessageId;
use crate::name::QueueName;
use crate::payload;
use crate::send::Outgoing;
use crate::sql;
use crate::wire::{Interval, Json};

/// A message that is sent at every tick of a cron expression.
///
/// `Debug` shows when it is sent, and not what.
#[derive(Clone)]
pub struct Schedule {
    name: String,
    cron: String,
    timezone: String,
    queue: String,
    message: Outgoing,
    missed: Missed,
    grace: Duration,
    headers: Map<String, Value>,
    delay: Option<Duration>,
    priority: Option<i16>,
    max_attempts: Option<u16>,
    policy: Map<String, Value>,
    expires_in: Option<Duration>,
}

/// What becomes of ticks that nobody sent in time: no worker ran, the schedule was paused, or its queue was missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    /// They are skipped; the schedule goes on with the next tick.
    #[default]
    Skip,
    /// One message is sent for all of them.
    Once,
    /// A message is sent for each of them.
    All {
        /// The most that are made up for, the newest; 1 to 1000.
        cap: u16,
    },
}

impl Missed {
    fn from_sql(missed: &str, cap: i32) -> Self {
        match missed {
            "once" => Self::Once,
            "all" => Self::All { cap: u16::try_from(cap).unwrap_or(u16::MAX) },
            _ => Self::Skip,
        }
    }

    fn to_sql(self) -> (&'static str, i32) {
        match self {
            Self::Skip => ("skip", 100),
            Self::Once => ("once", 100),
            Self::All { cap } => ("all", cap.into()),
        }
    }
}

impl Schedule {
    /// Starts with what a schedule needs: a name of its own, a cron expression, a queue and a message.
    ///
    /// The expression is read in UTC, if no [`timezone`](Self::timezone) is set. All is checked when it is added.
    pub fn new(
        name: impl Into<String>,
        cron: impl Into<String>,
        queue: impl Into<String>,
        message: Outgoing,
    ) -> Self {
        Self {
            name: name.into(),
            cron: cron.into(),
            timezone: "UTC".into(),
            queue: queue.into(),
            message,
            missed: Missed::default(),
            grace: Duration::from_secs(60),
            headers: Map::new(),
            delay: None,
            priority: None,
            max_attempts: None,
            policy: Map::new(),
            expires_in: None,
        }
    }

    /// Sets the time zone in which the expression is read, by its name in the IANA database. Default: UTC.
    pub fn timezone(mut self, timezone: impl Into<String>) -> Self {
        self.timezone = timezone.into();
        self
    }

    /// Sets what becomes of ticks that nobody sent in time. Default: they are skipped.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Sets how late a tick may be sent that does not count as missed, 1 s to 36500 days. Default: 1 min.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the headers. Keys that begin with `vtq_` are vtq's own and are refused.
    pub fn headers(mut self, headers: Map<String, Value>) -> Self {
        self.headers = headers;
        self
    }

    /// Makes the messages due this long after they are sent. Default: at once. At most 36500 days.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Sets the level of the messages. Default: 0, or the queue's last level where it has no 0.
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets how many runs are allowed, the first included; 1 to 32767. Default: the queue's.
    pub fn max_attempts(mut self, max_attempts: u16) -> Self {
        self.max_attempts = Some(max_attempts);
        self
    }

    /// Sets the backoff of the messages. Default: the queue's.
    pub fn backoff(mut self, backoff: &Backoff) -> Self {
        let value = serde_json::to_value(backoff).expect("a backoff is plain data");
        self.policy.insert("backoff".into(), value);
        self
    }

    /// Sets how long one run may take; `None`: no limit. Default: the queue's.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        let seconds = timeout.into().map(|limit| limit.as_secs_f64());
        self.policy.insert("timeout".into(), seconds.into());
        self
    }

    /// Forbids to start a message later than this long after it was sent.
    pub fn expires_in(mut self, length: Duration) -> Self {
        self.expires_in = Some(length);
        self
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("name", &self.name)
            .field("cron", &self.cron)
            .field("timezone", &self.timezone)
            .field("queue", &self.queue)
            .field("missed", &self.missed)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// Schedules. A schedule that is not there is [`ErrorKind::ScheduleNotFound`](crate::ErrorKind::ScheduleNotFound).
impl Vtq {
    /// Adds a schedule, or changes the one of that name.
    ///
    /// One that was there keeps its pause and what it has counted, and where neither the expression nor the zone has
    /// changed, the tick that is next: adding it again at each start of a program misses none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) with the rule for an expression, a zone or
    /// an option that breaks it; `QueueNotFound`.
    /// # SQL
    /// `sql/functions/vtq.schedule_add.sql`
    pub async fn schedule_add(&self, schedule: &Schedule) -> Result<Created> {
        Cron::new(&schedule.cron, &schedule.timezone)?;
        QueueName::new(&schedule.queue)?;
        let client = self.client().await?;
        client.bounded("add a schedule", add(&*client, schedule)).await
    }

    /// Lists the schedules, in order of name.
    ///
    /// # SQL
    /// `sql/functions/vtq.schedule_list.sql`
    pub async fn schedules(&self) -> Result<Vec<ScheduleInfo>> {
        let client = self.client().await?;
        client.bounded("list the schedules", info::list(&*client)).await
    }

    /// Keeps a schedule from sending until [`schedule_resume`](Self::schedule_resume), or until an instant. False
    /// when it was paused.
    ///
    /// # SQL
    /// `sql/functions/vtq.schedule_pause.sql`
    pub async fn schedule_pause(
        &self,
        name: &str,
        reason: Option<&str>,
        until: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        let client = self.client().await?;
        let what = format!("pause schedule `{name}`");
        let params: [Param<'_>; 3] =
            [(&name, Type::TEXT), (&reason, Type::TEXT), (&until, Type::TIMESTAMPTZ)];
        client.bounded(&what, call::value(&*client, &what, sql::SCHEDULE_PAUSE, &params)).await
    }

    /// Ends a pause; false when there was none. What was missed meanwhile is skipped or made up for, as the schedule
    /// says.
    ///
    /// # SQL
    /// `sql/functions/vtq.schedule_resume.sql`
    pub async fn schedule_resume(&self, name: &str) -> Result<bool> {
        let client = self.client().await?;
        let what = format!("resume schedule `{name}`");
        let params: [Param<'_>; 1] = [(&name, Type::TEXT)];
        client.bounded(&what, call::value(&*client, &what, sql::SCHEDULE_RESUME, &params)).await
    }

    /// Sends a schedule's message now, besides its plan, whether it is paused or not.
    ///
    /// # SQL
    /// `sql/functions/vtq.schedule_run.sql`
    pub async fn schedule_run(&self, name: &str) -> Result<MessageId> {
        let client = self.client().await?;
        let what = format!("run schedule `{name}`");
        let params: [Param<'_>; 1] = [(&name, Type::TEXT)];
        client.bounded(&what, call::value(&*client, &what, sql::SCHEDULE_RUN, &params)).await
    }

    /// Removes a schedule; false when it was not there. Messages that it has sent stay.
    ///
    /// # SQL
    /// `sql/functions/vtq.schedule_remove.sql`
    pub async fn schedule_remove(&self, name: &str) -> Result<bool> {
        let client = self.client().await?;
        let what = format!("remove schedule `{name}`");
        let params: [Param<'_>; 1] = [(&name, Type::TEXT)];
        client.bounded(&what, call::value(&*client, &what, sql::SCHEDULE_REMOVE, &params)).await
    }
}

/// Adds or changes a schedule, and works out its next tick, which need not wait for a worker.
async fn add<C: GenericClient>(client: &C, schedule: &Schedule) -> Result<Created> {
    let what = format!("add schedule `{}`", schedule.name);
    let object = |what, map: &Map<String, Value>| match map.is_empty() {
        true => Ok(None),
        false => payload::encode(what, map).map(Some),
    };
    let (headers, policy) = (object("headers", &schedule.headers)?, object("policy", &schedule.policy)?);
    let (missed, cap) = schedule.missed.to_sql();
    let params: [Param<'_>; 14] = [
        (&schedule.name, Type::TEXT),
        (&schedule.cron, Type::TEXT),
        (&schedule.queue, Type::TEXT),
        (&Json(&schedule.message.body), Type::JSONB),
        (&schedule.timezone, Type::TEXT),
        (&missed, Type::TEXT),
        (&cap, Type::INT4),
        (&Interval(schedule.grace), Type::INTERVAL),
        (&headers.as_deref().map(Json), Type::JSONB),
        (&schedule.delay.map(Interval), Type::INTERVAL),
        (&schedule.priority.map(i32::from), Type::INT4),
        (&schedule.max_attempts.map(i32::from), Type::INT4),
        (&policy.as_deref().map(Json), Type::JSONB),
        (&schedule.expires_in.map(Interval), Type::INTERVAL),
    ];
    let is_new: bool = call::value(client, &what, sql::SCHEDULE_ADD, &params).await?;
    for new in due(client, 1, Some(&schedule.name)).await?.iter().filter(|due| due.next_at.is_none()) {
        new.fire(client).await?;
    }
    Ok(if is_new { Created::New } else { Created::Existing })
}

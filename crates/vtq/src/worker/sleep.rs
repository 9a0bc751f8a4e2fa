//! The fetcher's sleep: announced, so that senders notify, and taken back, so that a busy queue sends no notifications.

use std::time::Duration;

use futures_util::FutureExt;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::event::WorkerEvent;
use super::fetch::{FIRST_POLL, Fetcher};
use super::plan::Plan;
use crate::call::{self, Param};
use crate::error::Result;
use crate::sql;
use crate::wire::Interval;

/// The slowest poll while a listener hears, unless another is set: the last resort.
const HEARING_POLL: Duration = Duration::from_secs(30);
/// The slowest poll without one, unless another is set.
const DEAF_POLL: Duration = Duration::from_secs(1);
/// How long an announcement outlives the sleep it was made for.
const ANNOUNCED_FOR: Duration = Duration::from_secs(60);

impl Fetcher {
    /// Announces the sleep, looks once more, and sleeps until a notification, the next due time, or the slowest poll.
    pub(super) async fn sleep(&mut self) {
        let plan = self.plan.clone();
        let unset = if plan.is_hearing() { HEARING_POLL } else { DEAF_POLL };
        let slowest = plan.settings.slowest_poll.unwrap_or(unset);
        let Some((due_in, is_written)) = self.announce(slowest).await else { return };
        // What was recorded up to now shows in the look that follows.
        let _ = plan.settled.notified().now_or_never();
        // Whoever sent before the announcement shows now, or still holds a lock that says so.
        self.look_everywhere();
        if self.round().await.found > 0 {
            return;
        }
        plan.events.tell(WorkerEvent::Asleep);
        let poll = if is_written { Duration::from_millis(50) } else { slowest };
        let length = due_in.map_or(poll, |due| due.clamp(Duration::from_millis(5), poll));
        let was_woken = tokio::select! {
            () = plan.stir.notified() => true,
            () = plan.again.notified() => true,
            // A run that ended is one less in flight, which a limit of the queue may have waited for.
            () = plan.settled.notified() => true,
            () = tokio::time::sleep(length) => false,
        };
        self.look_everywhere();
        if was_woken || due_in.is_some_and(|due| due <= length) {
            // Awake for a while: what has come is seldom alone.
            self.poll = FIRST_POLL;
            self.idle_since = None;
        }
    }

    /// Announces a sleep of this length at the most. Answers when the next message is due, and whether somebody is
    /// writing to a queue; nothing when the database did not answer.
    pub(super) async fn announce(&mut self, slowest: Duration) -> Option<(Option<Duration>, bool)> {
        let plan = self.plan.clone();
        let client = self.connected.client(&plan.stop).await?;
        match self.connected.bounded("doze", doze(&plan, &client, slowest + ANNOUNCED_FOR)).await {
            Ok(answer) => {
                self.is_announced = true;
                Some(answer)
            }
            Err(error) => {
                self.trouble(0, error).await;
                None
            }
        }
    }

    /// Takes the announcement back, so that a busy queue sends no notifications.
    pub(super) async fn rise(&mut self) {
        if !std::mem::take(&mut self.is_announced) {
            return;
        }
        let plan = self.plan.clone();
        let Some(client) = self.connected.client(&plan.stop).await else { return };
        let params: [Param<'_>; 1] = [(&&*plan.worker_id, Type::TEXT)];
        let rise = call::rows(&*client, "take back the announcement", sql::RISE, &params);
        if let Err(error) = self.connected.bounded("rise", rise).await {
            self.connected.failed(&error);
        }
    }
}

async fn doze(plan: &Plan, client: &Client, at_most: Duration) -> Result<(Option<Duration>, bool)> {
    let what = "announce the sleep";
    let queues = plan.queue_names();
    let params: [Param<'_>; 3] =
        [(&queues, Type::TEXT_ARRAY), (&&*plan.worker_id, Type::TEXT), (&Interval(at_most), Type::INTERVAL)];
    let row = call::row(client, what, sql::DOZE, &params).await?;
    let due_in = call::column::<Option<Interval>>(&row, 0, what)?.map(|due| due.0);
    Ok((due_in, call::column(&row, 1, what)?))
}

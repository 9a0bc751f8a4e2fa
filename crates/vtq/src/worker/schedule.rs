//! Schedules: every worker looks for what is due and fires it, whatever queues it serves. The database lets one do it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use tokio_postgres::Client;

use super::connection::Connected;
use super::event::WorkerEvent;
use super::health::chain;
use super::plan::Plan;
use crate::error::{Error, ErrorKind};
use crate::schedule::{Due, due};

/// The most schedules that one look answers.
const QTY: i32 = 100;
/// How often to look when nothing is due: with a listener, which hears of new schedules, and without. Ten idle workers
/// together look six times a minute, or thirty.
const HEARING_LOOK: Duration = Duration::from_secs(60);
const DEAF_LOOK: Duration = Duration::from_secs(20);
/// How far apart looks are that nothing but a notification asks for: a listener that cannot hold its connection would
/// make them a hot loop.
const APART: Duration = Duration::from_secs(1);
/// A connection is kept when it is needed again this soon, and given up for longer waits.
const KEEP: Duration = Duration::from_secs(10);
/// How long to leave a schedule alone that did not move on: another worker, or a person, holds its row.
const HELD: Duration = Duration::from_secs(1);
/// When to try again what the database refused, such as a send to a queue that is gone.
const RETRY_IN: Duration = Duration::from_secs(10);
/// When to try again an expression or a zone that cannot be read; a newer worker may know the zone.
const REREAD_IN: Duration = Duration::from_secs(300);
/// When to look again after the role was refused to look at all, or to fire a schedule.
const REFUSED: Duration = Duration::from_secs(300);

/// A schedule at a place of its plan.
type Place = (String, i64, Option<DateTime<Utc>>);

/// What this worker remembers of schedules from one look to the next.
#[derive(Default)]
struct Memory {
    /// What was due at the last look, to see what has not moved.
    seen: HashSet<Place>,
    /// Those that this worker could not fire, and until when it leaves them to others.
    avoided: HashMap<String, Instant>,
    /// What was told of each trouble.
    told: HashMap<String, String>,
    was_refused: bool,
}

/// The loop.
pub(super) async fn run(plan: Arc<Plan>) {
    let mut connected = Connected::new(plan.clone(), "schedule");
    let mut memory = Memory::default();
    loop {
        let began = Instant::now();
        let Some(wait) = look(&plan, &mut connected, &mut memory).await else { return };
        if wait > KEEP {
            connected.rest();
        }
        let due_at = Instant::now() + wait;
        tokio::select! {
            () = plan.stop.cancelled() => return,
            () = plan.replan.notified() => tokio::time::sleep_until(due_at.min(began + APART)).await,
            () = tokio::time::sleep_until(due_at) => {}
        }
    }
}

/// Fires what is due, and answers how long to wait; `None` when it is to stop.
async fn look(plan: &Plan, connected: &mut Connected, memory: &mut Memory) -> Option<Duration> {
    let client = connected.client(&plan.stop).await?;
    let longest = if plan.is_hearing() { HEARING_LOOK } else { DEAF_LOOK };
    let found = match connected.bounded("look for schedules", due(&*client, QTY, None)).await {
        Ok(found) => found,
        Err(error) => return Some(connected.failed(&error).unwrap_or_else(|| refused(plan, memory, &error))),
    };
    connected.worked();
    memory.was_refused = false;
    memory.avoided.retain(|_, until| *until > Instant::now());
    let (now, later): (Vec<Due>, Vec<Due>) = found.into_iter().partition(|due| due.due_in.is_zero());
    let mut wait = later.first().map_or(longest, |next| next.due_in.min(longest));
    let mut places = HashSet::new();
    for due in &now {
        if memory.avoided.contains_key(&due.name) {
            continue;
        }
        if plan.stop.is_cancelled() {
            return None;
        }
        let place = (due.name.clone(), due.revision, due.next_at);
        // What moves on may be due again already.
        wait = wait.min(if memory.seen.contains(&place) { HELD } else { Duration::ZERO });
        places.insert(place);
        if let Err(error) = fire(plan, connected, memory, &client, due).await {
            // The next look shows whether it went through: a tick is sent once. Where the database is there and does
            // not come to an end with this one, as behind a lock on its queue, the others go first.
            if error.kind() != ErrorKind::Unavailable {
                memory.avoided.insert(due.name.clone(), Instant::now() + RETRY_IN);
            }
            return Some(connected.failed(&error).unwrap_or(HELD));
        }
    }
    memory.seen = places;
    Some(wait)
}

/// Fires one; an error is one of the database's absence.
async fn fire(
    plan: &Plan,
    connected: &Connected,
    memory: &mut Memory,
    client: &Client,
    due: &Due,
) -> Result<(), Error> {
    let error = match connected.bounded("fire a schedule", due.fire(client)).await {
        Ok(fired) => {
            if memory.told.remove(&due.name).is_some() {
                plan.events.tell(WorkerEvent::ScheduleBack { name: due.name.clone() });
            }
            for tick in fired {
                let name = due.name.clone();
                plan.events.tell(WorkerEvent::ScheduleFired { name, tick_at: tick.tick_at, id: tick.id });
            }
            return Ok(());
        }
        Err(error) if error.is_retryable() => return Err(error),
        Err(error) => error,
    };
    let text = chain(&error);
    if memory.told.get(&due.name) != Some(&text) {
        memory.told.insert(due.name.clone(), text.clone());
        plan.events.tell(WorkerEvent::ScheduleTrouble { name: due.name.clone(), error: text.clone() });
    }
    let retry_in = match error.kind() {
        // Another worker's role may be allowed to: the schedule stays due, and this worker leaves it alone.
        ErrorKind::PermissionDenied => {
            memory.avoided.insert(due.name.clone(), Instant::now() + REFUSED);
            return Ok(());
        }
        ErrorKind::InvalidArgument if error.code().is_none() => REREAD_IN,
        _ => RETRY_IN,
    };
    let note =
        connected.bounded("write down why a schedule fails", due.failed(client, &text, retry_in)).await;
    match note {
        Err(error) if error.is_retryable() => Err(error),
        _ => Ok(()),
    }
}

/// Takes note that the database refuses to show the schedules: mostly that the role may not look at them.
fn refused(plan: &Plan, memory: &mut Memory, error: &Error) -> Duration {
    if !std::mem::replace(&mut memory.was_refused, true) {
        plan.events.tell(WorkerEvent::SchedulesRefused { error: chain(error) });
    }
    if error.kind() == ErrorKind::PermissionDenied { REFUSED } else { RETRY_IN }
}

//! The worker's events as lines of the log.

use vtq::{CancelCause, Ending, Stopped, WorkerEvent};

use super::log::{Level, Line, Log};
use crate::output::instant;

/// Tells an event, at the level that it deserves.
pub(super) fn tell(log: &Log, event: &WorkerEvent, served: &str) {
    if let Some(line) = line(log, event, served) {
        log.tell(line);
    }
}

/// Sums up a worker's life.
pub(super) fn summary(stopped: &Stopped) -> Line {
    let Stopped { done, retried, given_back, dead, lost, late, interrupted, .. } = *stopped;
    let text = format!(
        "stopped: {done} done, {retried} retried, {given_back} given back, {dead} dead, {lost} lost, {late} late, \
         {interrupted} interrupted"
    );
    Line::new(Level::Info, "stopped", text)
        .with("done", done)
        .with("retried", retried)
        .with("given_back", given_back)
        .with("dead", dead)
        .with("lost", lost)
        .with("late", late)
        .with("interrupted", interrupted)
}

fn line(log: &Log, event: &WorkerEvent, served: &str) -> Option<Line> {
    Some(match event {
        WorkerEvent::Started { worker_id } => {
            Line::new(Level::Info, "started", format!("worker {worker_id} serves {served}"))
                .with("worker", worker_id.to_string())
                .with("serves", served)
        }
        WorkerEvent::RunStarted { .. } | WorkerEvent::Settled { .. } => return run(log, event),
        WorkerEvent::LeaseLost { queue, id } => {
            let text = format!("{queue}/{id}: the lease is lost; delivered again, or cancelled");
            Line::new(Level::Warn, "lease_lost", text).with("queue", queue.as_str()).with("msg_id", *id)
        }
        // A lost lease has its line already.
        WorkerEvent::Cancelled { cause: CancelCause::LeaseLost, .. } => return None,
        WorkerEvent::Cancelled { queue, id, cause } => {
            let (cause, text) = match cause {
                CancelCause::TimedOut => ("timed_out", "has run into its time limit"),
                _ => ("shutdown", "the drain timeout is over"),
            };
            Line::new(Level::Warn, "cancelled", format!("{queue}/{id}: told to stop, {text}"))
                .with("queue", queue.as_str())
                .with("msg_id", *id)
                .with("cause", cause)
        }
        WorkerEvent::Stopping { running } => {
            let text = format!("stopping: no new messages, {running} running");
            Line::new(Level::Info, "stopping", text).with("running", *running)
        }
        WorkerEvent::Asleep => Line::new(Level::Debug, "asleep", "nothing to do: waiting"),
        WorkerEvent::ScheduleFired { name, tick_at, id } => {
            let tick = instant(*tick_at);
            Line::new(
                Level::Debug,
                "schedule_fired",
                format!("schedule {name}: sent message {id} for {tick}"),
            )
            .with("schedule", name.as_str())
            .with("tick", tick)
            .with("msg_id", *id)
        }
        _ => return trouble(event),
    })
}

fn run(log: &Log, event: &WorkerEvent) -> Option<Line> {
    match event {
        WorkerEvent::RunStarted { queue, lease, attempt } => {
            let text = format!("{queue}/{} attempt {attempt}: started", lease.id);
            Some(
                Line::new(Level::Debug, "run_started", text)
                    .with("queue", queue.as_str())
                    .with("msg_id", lease.id)
                    .with("read_ct", lease.read_ct)
                    .with("attempt", *attempt),
            )
        }
        WorkerEvent::Settled { queue, lease, attempt, ending, ran } => {
            let why = log.take_note(queue, *lease);
            let level = match ending {
                Ending::Done | Ending::GivenBack => Level::Debug,
                _ => Level::Warn,
            };
            let because = why.as_ref().map_or_else(String::new, |why| format!("{why}, "));
            let ran_ms = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
            let text = format!("{queue}/{} attempt {attempt}: {because}{ending} after {ran_ms} ms", lease.id);
            let line = Line::new(level, "settled", text)
                .with("queue", queue.as_str())
                .with("msg_id", lease.id)
                .with("read_ct", lease.read_ct)
                .with("attempt", *attempt)
                .with("ending", ending.to_string())
                .with("ran_ms", ran_ms);
            Some(match why {
                Some(why) => line.with("class", why),
                None => line,
            })
        }
        _ => None,
    }
}

fn trouble(event: &WorkerEvent) -> Option<Line> {
    Some(match event {
        WorkerEvent::DatabaseLost { part, error } => {
            Line::new(Level::Warn, "database_lost", format!("{part}: the database is away: {error}"))
                .with("part", *part)
                .with("error", error.as_str())
        }
        WorkerEvent::DatabaseBack { part, after } => {
            let away_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            Line::new(
                Level::Info,
                "database_back",
                format!("{part}: the database is back after {away_ms} ms"),
            )
            .with("part", *part)
            .with("away_ms", away_ms)
        }
        WorkerEvent::ListenerDeaf { reason } => {
            Line::new(Level::Warn, "listener_deaf", format!("no notifications, polling: {reason}"))
                .with("reason", reason.as_str())
        }
        WorkerEvent::ListenerHears => {
            Line::new(Level::Info, "listener_hears", "listener reconnected: notifications arrive")
        }
        WorkerEvent::QueueTrouble { queue, error } => {
            Line::new(Level::Warn, "queue_trouble", format!("queue {queue} cannot be served: {error}"))
                .with("queue", queue.as_str())
                .with("error", error.as_str())
        }
        WorkerEvent::QueueBack { queue } => {
            Line::new(Level::Info, "queue_back", format!("queue {queue} is served again"))
                .with("queue", queue.as_str())
        }
        WorkerEvent::MaintenanceRefused { queue, error } => {
            let text =
                format!("queue {queue} cannot be maintained, so nothing in it is ever removed: {error}");
            Line::new(Level::Warn, "maintenance_refused", text)
                .with("queue", queue.as_str())
                .with("error", error.as_str())
        }
        WorkerEvent::ScheduleTrouble { name, error } => {
            Line::new(Level::Warn, "schedule_trouble", format!("schedule {name} cannot send: {error}"))
                .with("schedule", name.as_str())
                .with("error", error.as_str())
        }
        WorkerEvent::ScheduleBack { name } => {
            Line::new(Level::Info, "schedule_back", format!("schedule {name} sends again"))
                .with("schedule", name.as_str())
        }
        WorkerEvent::SchedulesRefused { error } => {
            let text = format!("schedules are left to other workers: {error}");
            Line::new(Level::Warn, "schedules_refused", text).with("error", error.as_str())
        }
        WorkerEvent::Swept { queue, dead } => {
            let text = format!("queue {queue}: {dead} exhausted or expired, moved to the dead letters");
            Line::new(Level::Warn, "swept", text).with("queue", queue.as_str()).with("dead", *dead)
        }
        _ => return None,
    })
}

//! What `vtq start` tells on standard error: a line a state change, and one for each run that did not end well.
//!
//! Ids and the class of an error, never its text: that may quote the message. It is kept with the attempt.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use clap::ValueEnum;
use serde_json::{Map, Value};
use vtq::{Lease, QueueName};

/// The lines that may wait to be written; the next ones are counted and left out.
const WAITING: usize = 10_000;
/// The runs whose ends may wait to be told.
const NOTES: usize = 20_000;
/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// An object a line.
    Json,
}

/// How much a line matters, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Debug,
    Info,
    Warn,
}

/// A line to be written.
#[derive(Debug)]
pub(super) struct Line {
    level: Level,
    event: &'static str,
    text: String,
    fields: Map<String, Value>,
}

impl Line {
    pub(super) fn new(level: Level, event: &'static str, text: impl Into<String>) -> Self {
        Self { level, event, text: text.into(), fields: Map::new() }
    }

    /// Adds what a program would want to have apart.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    fn render(&self, format: Format) -> String {
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let level = match self.level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
        };
        match format {
            Format::Text => format!("{time} {level:<5} {}\n", self.text.replace(['\n', '\r'], " ")),
            Format::Json => {
                let mut whole = Map::new();
                whole.insert("time".into(), time.into());
                whole.insert("level".into(), level.into());
                whole.insert("event".into(), self.event.into());
                whole.insert("text".into(), self.text.as_str().into());
                whole.extend(self.fields.clone());
                format!("{}\n", Value::Object(whole))
            }
        }
    }
}

/// Where lines go. Cheap to clone. Telling never waits: it happens on the engine's thread, which keeps the leases.
#[derive(Debug, Clone)]
pub(super) struct Log {
    least: Level,
    lines: SyncSender<Order>,
    lost: Arc<AtomicU64>,
    notes: Arc<Mutex<HashMap<(QueueName, Lease), String>>>,
}

#[derive(Debug)]
enum Order {
    Write(Line),
    Flush(SyncSender<()>),
}

impl Log {
    /// Starts the thread that writes.
    pub(super) fn start(format: Format, least: Level) -> std::io::Result<Self> {
        let (lines, orders) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counter = lost.clone();
        thread::Builder::new().name("vtq-log".into()).spawn(move || write(&orders, format, &counter))?;
        Ok(Self { least, lines, lost, notes: Arc::default() })
    }

    pub(super) fn tell(&self, line: Line) {
        if line.level >= self.least && self.lines.try_send(Order::Write(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all is written that was told, but not for ever: nobody may be reading.
    pub(super) fn flush(&self) {
        let (written, wait) = sync_channel(1);
        if self.lines.try_send(Order::Flush(written)).is_ok() {
            let _ = wait.recv_timeout(LAST_LINES);
        }
    }

    /// Keeps why a run did not end well, until the engine says what became of the message.
    pub(super) fn note(&self, queue: QueueName, lease: Lease, why: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        // Of a lost lease nothing more is told. So few are lost that this is seldom done.
        if notes.len() >= NOTES {
            notes.clear();
        }
        notes.insert((queue, lease), why);
    }

    pub(super) fn take_note(&self, queue: &QueueName, lease: Lease) -> Option<String> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.remove(&(queue.clone(), lease))
    }
}

fn write(orders: &Receiver<Order>, format: Format, lost: &AtomicU64) {
    while let Ok(order) = orders.recv() {
        // An error is for nobody to hear: this is where errors go.
        match order {
            Order::Write(line) => {
                let _ = std::io::stderr().write_all(line.render(format).as_bytes());
            }
            Order::Flush(written) => {
                let _ = written.try_send(());
            }
        }
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let text = format!("{missing} lines are missing here: standard error is read too slowly");
            let line = Line::new(Level::Warn, "lines_lost", text).with("lines", missing);
            let _ = std::io::stderr().write_all(line.render(format).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_in_either_format() {
        let line = Line::new(Level::Warn, "database_lost", "gone:\nfar away").with("part", "fetch");

        let text = line.render(Format::Text);
        assert!(text.ends_with("Z warn  gone: far away\n"), "{text}");

        let json: Value = serde_json::from_str(&line.render(Format::Json)).unwrap();
        assert_eq!(json["event"], "database_lost");
        assert_eq!(json["text"], "gone:\nfar away");
        assert_eq!(json["part"], "fetch");
        assert_eq!(line.render(Format::Json).matches('\n').count(), 1);
    }
}

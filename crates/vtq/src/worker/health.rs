//! Whether the database is there, as one fact for all parts of a worker: one event when it goes, one when it is back.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Instant;

use super::event::{Events, WorkerEvent};
use super::plan::lock;
use crate::error::Error;

/// The parts that miss the database, and since when.
#[derive(Debug)]
pub(super) struct Health {
    events: Events,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    down: HashSet<&'static str>,
    since: Option<Instant>,
}

impl Health {
    pub(super) fn new(events: Events) -> Self {
        Self { events, state: Mutex::default() }
    }

    /// A part has lost the database.
    pub(super) fn down(&self, part: &'static str, error: &Error) {
        let mut state = lock(&self.state);
        let was_up = state.down.is_empty();
        state.down.insert(part);
        if was_up {
            state.since = Some(Instant::now());
            drop(state);
            self.events.tell(WorkerEvent::DatabaseLost { part, error: chain(error) });
        }
    }

    /// A part has it back.
    pub(super) fn up(&self, part: &'static str) {
        let mut state = lock(&self.state);
        let was_down = state.down.remove(part);
        if was_down
            && state.down.is_empty()
            && let Some(since) = state.since.take()
        {
            drop(state);
            self.events.tell(WorkerEvent::DatabaseBack { part, after: since.elapsed() });
        }
    }
}

/// An error with its causes, on one line.
pub(super) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

//! Every run of every handler, in whatever process: who ran what, from when to when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use vtq::{Lease, MessageId};

use crate::clock::{Micros, now};

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) lease: Lease,
    /// The worker's number; a process that takes another's place has one of its own.
    pub(crate) worker: usize,
    pub(crate) start: Micros,
    /// None while it runs; for a worker that was killed, the moment of its death.
    pub(crate) end: Option<Micros>,
}

/// All runs of a test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<Vec<Run>>>);

/// Ends a run when it is dropped: also that of a handler that is dropped half-way.
#[derive(Debug)]
pub(crate) struct Ends {
    runs: Runs,
    place: usize,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.runs.0.lock().unwrap()[self.place].end = Some(now());
    }
}

impl Runs {
    /// A run of this process begins.
    pub(crate) fn begin(&self, worker: usize, lease: Lease) -> Ends {
        let place = self.add(Run { lease, worker, start: now(), end: None });
        Ends { runs: self.clone(), place }
    }

    fn add(&self, run: Run) -> usize {
        let mut runs = self.0.lock().unwrap();
        runs.push(run);
        runs.len() - 1
    }

    /// A run of another process has begun.
    pub(crate) fn begun(&self, worker: usize, lease: Lease, start: Micros) {
        self.add(Run { lease, worker, start, end: None });
    }

    /// A run of another process has ended.
    pub(crate) fn ended(&self, worker: usize, lease: Lease, end: Micros) {
        let mut runs = self.0.lock().unwrap();
        let run = runs.iter_mut().rev().find(|run| run.worker == worker && run.lease == lease);
        run.expect("a run begins before it ends").end = Some(end);
    }

    /// A process is dead, and so are its runs.
    pub(crate) fn died(&self, worker: usize) {
        let at = now();
        for run in self.0.lock().unwrap().iter_mut().filter(|run| run.worker == worker) {
            run.end.get_or_insert(at);
        }
    }

    /// How many runs of a worker began after a moment.
    pub(crate) fn begun_since(&self, worker: usize, since: Micros) -> usize {
        self.0.lock().unwrap().iter().filter(|run| run.worker == worker && run.start >= since).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Pairs of runs of one message that went on at the same time.
    pub(crate) fn overlaps(&self) -> Vec<(Run, Run)> {
        let mut by_message: BTreeMap<MessageId, Vec<Run>> = BTreeMap::new();
        for run in self.0.lock().unwrap().iter() {
            by_message.entry(run.lease.id).or_default().push(*run);
        }
        let mut overlaps = Vec::new();
        for runs in by_message.values_mut() {
            runs.sort_by_key(|run| run.start);
            for pair in runs.windows(2) {
                if pair[0].end.is_none_or(|end| end > pair[1].start) {
                    overlaps.push((pair[0], pair[1]));
                }
            }
        }
        overlaps
    }
}

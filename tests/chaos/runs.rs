//! Every run of every handler, in whatever process: who ran what, from when to when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use vtq::{Lease, Message};

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
    /// Until when nobody else may have the message, as its delivery said. Heartbeats move it on.
    pub(crate) leased_until: Micros,
    /// Whether its worker was killed in the middle: then nobody may come after it before the lease has lapsed.
    pub(crate) is_killed: bool,
}

impl Run {
    fn new(worker: usize, lease: Lease, start: Micros, leased_until: Micros) -> Self {
        Self { lease, worker, start, end: None, leased_until, is_killed: false }
    }

    /// Tells whether it was over, or its lease was, when another one began.
    fn is_over_at(&self, start: Micros) -> bool {
        self.end.is_some_and(|end| end <= start) && !(self.is_killed && start < self.leased_until)
    }
}

/// The end of a message's lease, by its delivery.
pub(crate) fn leased_until(message: &Message) -> Micros {
    message.visible_at.timestamp_micros().cast_unsigned()
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
    pub(crate) fn begin(&self, worker: usize, message: &Message) -> Ends {
        let place = self.add(Run::new(worker, message.lease, now(), leased_until(message)));
        Ends { runs: self.clone(), place }
    }

    fn add(&self, run: Run) -> usize {
        let mut runs = self.0.lock().unwrap();
        runs.push(run);
        runs.len() - 1
    }

    /// A run of another process has begun.
    pub(crate) fn begun(&self, worker: usize, lease: Lease, start: Micros, leased_until: Micros) {
        self.add(Run::new(worker, lease, start, leased_until));
    }

    /// A run of another process has ended.
    pub(crate) fn ended(&self, worker: usize, lease: Lease, end: Micros) {
        let mut runs = self.0.lock().unwrap();
        let run = runs.iter_mut().rev().find(|run| run.worker == worker && run.lease == lease);
        run.expect("a run begins before it ends").end = Some(end);
    }

    /// A process is dead, and so are its runs. Answers how many it had.
    pub(crate) fn died(&self, worker: usize) -> usize {
        let at = now();
        let mut killed = 0;
        let mut runs = self.0.lock().unwrap();
        for run in runs.iter_mut().filter(|run| run.worker == worker && run.end.is_none()) {
            run.end = Some(at);
            run.is_killed = true;
            killed += 1;
        }
        killed
    }

    /// The run that has been going on for longest, if there is one.
    pub(crate) fn running(&self) -> Option<Run> {
        self.0.lock().unwrap().iter().find(|run| run.end.is_none()).copied()
    }

    /// How many runs of a worker began after a moment.
    pub(crate) fn begun_since(&self, worker: usize, since: Micros) -> usize {
        self.0.lock().unwrap().iter().filter(|run| run.worker == worker && run.start >= since).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// The runs of each key, in the order in which they began.
    pub(crate) fn by_key<K: Ord>(&self, key: impl Fn(&Run) -> K) -> BTreeMap<K, Vec<Run>> {
        let mut by_key: BTreeMap<K, Vec<Run>> = BTreeMap::new();
        for run in self.0.lock().unwrap().iter() {
            by_key.entry(key(run)).or_default().push(*run);
        }
        for runs in by_key.values_mut() {
            runs.sort_by_key(|run| run.start);
        }
        by_key
    }

    /// Pairs of runs of one message that went on at the same time.
    pub(crate) fn overlaps(&self) -> Vec<(Run, Run)> {
        self.overlaps_of(|run| run.lease.id)
    }

    /// Pairs of runs of one key that went on at the same time.
    pub(crate) fn overlaps_of<K: Ord>(&self, key: impl Fn(&Run) -> K) -> Vec<(Run, Run)> {
        let by_key = self.by_key(key);
        let pairs = by_key.values().flat_map(|runs| runs.windows(2));
        pairs.filter(|pair| !pair[0].is_over_at(pair[1].start)).map(|pair| (pair[0], pair[1])).collect()
    }
}

//! What senders and handlers count, and how long messages took. Shared by all of them; cheap to write to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// A thousandth of a length, at any length.
const DIGITS: u8 = 3;
/// Longer ones count as this long.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The counts of a run.
#[derive(Debug)]
pub(super) struct Tally {
    /// All instants are counted from here.
    zero: Instant,
    pub(super) sent: AtomicU64,
    /// Handled, and recorded as such by the database.
    pub(super) handled: AtomicU64,
    /// Ended otherwise than as handled: the lease was lost, or the answer.
    pub(super) unsure: AtomicU64,
    /// Deliveries after the first.
    pub(super) redelivered: AtomicU64,
    /// Messages that are none of this run's.
    pub(super) foreign: AtomicU64,
    last_handled: AtomicU64,
    /// When each batch was committed, by its number; 0 until its sender knows.
    committed: RwLock<Vec<AtomicU64>>,
    pub(super) waits: Lengths,
    pub(super) sends: Lengths,
}

/// Lengths of time in a histogram: all of them, and those since it was last asked.
#[derive(Debug)]
pub(super) struct Lengths {
    recent: Mutex<Histogram<u64>>,
    all: Mutex<Histogram<u64>>,
}

impl Tally {
    pub(super) fn new() -> Self {
        let count = AtomicU64::default;
        Self {
            zero: Instant::now(),
            sent: count(),
            handled: count(),
            unsure: count(),
            redelivered: count(),
            foreign: count(),
            last_handled: count(),
            committed: RwLock::default(),
            waits: Lengths::new(),
            sends: Lengths::new(),
        }
    }

    /// Gives a batch that is about to be sent its number.
    pub(super) fn open_batch(&self) -> usize {
        let mut committed = self.committed.write().unwrap_or_else(PoisonError::into_inner);
        committed.push(AtomicU64::new(0));
        committed.len() - 1
    }

    /// Takes note that a batch is committed, after a send that took so long.
    pub(super) fn batch_committed(&self, batch: usize, messages: u64, took: Duration) {
        let committed = self.committed.read().unwrap_or_else(PoisonError::into_inner);
        committed[batch].store(self.now(), Ordering::Relaxed);
        self.sent.fetch_add(messages, Ordering::Relaxed);
        self.sends.record(took);
    }

    /// Takes note that the handler of a message of a batch starts now.
    ///
    /// A handler may start before the sender has been told that its batch is committed: that is a wait of nothing.
    pub(super) fn handler_started(&self, batch: usize) {
        let now = self.now();
        let committed = self.committed.read().unwrap_or_else(PoisonError::into_inner);
        let at = committed.get(batch).map_or(0, |at| at.load(Ordering::Relaxed));
        let wait = if at == 0 { 0 } else { now.saturating_sub(at) };
        self.waits.record(Duration::from_nanos(wait));
    }

    /// Takes note that the database has recorded a message as handled.
    pub(super) fn handled_now(&self) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        self.last_handled.fetch_max(self.now(), Ordering::Relaxed);
    }

    /// When the last message was handled; `None` before the first.
    pub(super) fn last_handled(&self) -> Option<Instant> {
        let at = self.last_handled.load(Ordering::Relaxed);
        (at > 0).then(|| self.zero + Duration::from_nanos(at))
    }

    /// Nanoseconds since the beginning, and never 0.
    fn now(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }
}

impl Lengths {
    fn new() -> Self {
        Self { recent: Mutex::new(histogram()), all: Mutex::new(histogram()) }
    }

    fn record(&self, length: Duration) {
        lock(&self.recent).saturating_record(micros(length));
    }

    /// Takes out what has been recorded since the last call, and keeps it among all.
    pub(super) fn take(&self) -> Histogram<u64> {
        let recent = std::mem::replace(&mut *lock(&self.recent), histogram());
        lock(&self.all).add(&recent).expect("both histograms have the same bounds");
        recent
    }

    /// All that was recorded.
    pub(super) fn all(&self) -> Histogram<u64> {
        self.take();
        lock(&self.all).clone()
    }
}

/// Reads a count.
pub(super) fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// Counts one more.
pub(super) fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(micros(LONGEST), DIGITS).expect("the bounds are fixed and sound")
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_from_the_commit_of_its_batch() {
        let tally = Tally::new();
        let (early, late) = (tally.open_batch(), tally.open_batch());
        tally.batch_committed(early, 2, Duration::from_millis(3));

        std::thread::sleep(Duration::from_millis(5));
        tally.handler_started(early);
        tally.handler_started(late);

        let waits = tally.waits.all();
        assert_eq!((waits.len(), waits.min()), (2, 0));
        assert!(waits.max() >= 5_000, "{}", waits.max());
        assert_eq!(read(&tally.sent), 2);
        assert_eq!(tally.sends.all().max() / 100, 30);
    }

    #[test]
    fn what_is_taken_stays_among_all() {
        let lengths = Lengths::new();
        lengths.record(Duration::from_millis(1));
        assert_eq!(lengths.take().len(), 1);
        lengths.record(Duration::from_millis(2));
        assert_eq!(lengths.take().len(), 1);

        assert_eq!((lengths.take().len(), lengths.all().len()), (0, 2));
    }

    #[test]
    fn a_length_beyond_all_bounds_is_kept_as_the_longest() {
        let lengths = Lengths::new();

        lengths.record(Duration::MAX);

        assert!(lengths.all().max() >= micros(LONGEST));
    }
}

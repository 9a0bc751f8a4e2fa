//! Whose turn it is to start: a message that may have killed its worker runs alone.
//!
//! Its neighbours would die with it, and after a few such deaths be dead letters without a fault of their own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::timeout;

/// How long a suspect waits for the runs beside it to end. Past that it runs beside them, and only keeps others from
/// starting: one long run must not stop a worker.
const PATIENCE: Duration = Duration::from_secs(10);

/// The right to start, which everybody shares and a suspect takes for itself.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Held by a suspect for its run, and by others for a moment, to start.
    door: RwLock<()>,
    /// Held by everybody for the run.
    room: RwLock<()>,
    /// Suspects that are through the door: nothing is fetched for this process meanwhile.
    suspects: AtomicUsize,
}

/// Somebody's turn; it ends when this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "held, not read")]
pub(super) struct Turn<'a> {
    door: Option<RwLockWriteGuard<'a, ()>>,
    alone: Option<RwLockWriteGuard<'a, ()>>,
    beside: Option<RwLockReadGuard<'a, ()>>,
    counted: Option<Counted<'a>>,
}

/// A suspect, as long as it has its turn.
#[derive(Debug)]
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Turns {
    /// Tells whether a suspect has its turn, so that whatever is fetched would only wait and die with it.
    pub(super) fn has_suspect(&self) -> bool {
        self.suspects.load(Ordering::Acquire) > 0
    }

    /// Waits for the turn of a run.
    pub(super) async fn take(&self, is_suspect: bool) -> Turn<'_> {
        if !is_suspect {
            let _through_the_door = self.door.read().await;
            return Turn { door: None, alone: None, beside: Some(self.room.read().await), counted: None };
        }
        let door = Some(self.door.write().await);
        self.suspects.fetch_add(1, Ordering::AcqRel);
        let counted = Some(Counted(&self.suspects));
        match timeout(PATIENCE, self.room.write()).await {
            Ok(alone) => Turn { door, alone: Some(alone), beside: None, counted },
            Err(_) => Turn { door, alone: None, beside: Some(self.room.read().await), counted },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn comes(turn: impl Future<Output = Turn<'_>>) -> bool {
        timeout(Duration::from_millis(20), turn).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn runs_share_and_suspects_do_not() {
        let turns = Turns::default();

        let one = turns.take(false).await;
        let two = turns.take(false).await;
        assert!(!comes(turns.take(true)).await, "a suspect must wait for those that run");
        drop((one, two));

        let suspect = turns.take(true).await;
        assert!(!comes(turns.take(false)).await, "nothing starts while a suspect runs");
        assert!(!comes(turns.take(true)).await, "suspects run one by one");
        drop(suspect);
        assert!(comes(turns.take(false)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn one_long_run_does_not_stop_a_suspect() {
        let turns = Turns::default();
        let _long = turns.take(false).await;

        let suspect = turns.take(true).await;

        assert!(!comes(turns.take(false)).await);
        drop(suspect);
        assert!(comes(turns.take(false)).await);
    }
}

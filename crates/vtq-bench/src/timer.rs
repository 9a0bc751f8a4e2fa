//! A timer that keeps to a millisecond. Tokio's rounds up to the next one, so that its 1 ms takes 2.

use std::collections::BTreeMap;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// How early a sleeper may be woken, so that one wake-up serves those that are due at nearly the same time.
const TOGETHER: Duration = Duration::from_micros(20);

#[derive(Default)]
struct Timer {
    sleepers: Mutex<Sleepers>,
    came: Condvar,
}

#[derive(Default)]
struct Sleepers {
    /// How many there have been.
    count: u64,
    /// By due time; the number keeps apart those that are due at the same.
    by_due: BTreeMap<(Instant, u64), oneshot::Sender<()>>,
}

static TIMER: LazyLock<&'static Timer> = LazyLock::new(|| {
    let timer: &'static Timer = Box::leak(Box::default());
    std::thread::spawn(|| timer.run());
    timer
});

/// Sleeps for `length`.
pub(crate) async fn sleep(length: Duration) {
    let (wake, woken) = oneshot::channel();
    TIMER.add(Instant::now() + length, wake);
    // The timer's thread does not end.
    let _ = woken.await;
}

impl Timer {
    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, due: Instant, wake: oneshot::Sender<()>) {
        let mut sleepers = self.lock();
        sleepers.count += 1;
        let key = (due, sleepers.count);
        sleepers.by_due.insert(key, wake);
        if sleepers.by_due.first_key_value().is_some_and(|(first, _)| *first == key) {
            self.came.notify_one();
        }
    }

    fn run(&self) -> ! {
        // The kernel delays a thread's wake-ups by 50 µs, to save power; best effort.
        let _ = nix::sys::prctl::set_timerslack(1000);
        let mut sleepers = self.lock();
        loop {
            let now = Instant::now();
            let later = sleepers.by_due.split_off(&(now + TOGETHER, u64::MAX));
            let due = std::mem::replace(&mut sleepers.by_due, later);
            let next = sleepers.by_due.first_key_value().map(|((due, _), _)| *due);
            for wake in due.into_values() {
                // A handler may have been dropped meanwhile.
                let _ = wake.send(());
            }
            sleepers = match next {
                Some(next) => {
                    let wait = next.saturating_duration_since(Instant::now());
                    self.came.wait_timeout(sleepers, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.came.wait(sleepers).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleepers_wake_in_the_order_they_are_due() {
        let order = Mutex::new(Vec::new());
        let sleeper = async |number: u64| {
            sleep(Duration::from_millis(20 * number)).await;
            order.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        };

        tokio::join!(sleeper(3), sleeper(1), sleeper(2));

        assert_eq!(order.into_inner().unwrap_or_default(), [1, 2, 3]);
    }
}

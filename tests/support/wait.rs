//! Waiting for something to become true.

use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep};

const POLL: Duration = Duration::from_millis(10);

/// Waits until `condition` gives true, and looks every 10 ms.
///
/// # Panics
/// After `limit`, with `what` was waited for and where.
#[track_caller]
pub fn wait_until<C>(limit: Duration, what: &str, mut condition: C) -> impl Future<Output = ()>
where
    C: AsyncFnMut() -> bool,
{
    let place = Location::caller();
    async move {
        let started = Instant::now();
        while !condition().await {
            assert!(started.elapsed() < limit, "waited {limit:?} at {place} for: {what}");
            sleep(POLL).await;
        }
    }
}

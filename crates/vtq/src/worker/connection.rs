//! A connection of the engine's own, which comes back by itself.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use super::plan::Plan;
use crate::error::{Error, ErrorKind, Result};

/// The part that settles and beats.
pub(super) const SETTLE: &str = "settle";

/// The least time that the settler's statements get. Recording a batch can take several round trips; on a slow network
/// a shorter limit would break a connection that works, and making a new one costs more leases than waiting does.
const LEAST_LIMIT: Duration = Duration::from_secs(5);

/// Waits that grow from 100 ms to 8 s, each somewhere in the upper half of its length, so that the workers of a fleet
/// do not come back together.
#[derive(Debug)]
pub(super) struct Patience(Duration);

impl Default for Patience {
    fn default() -> Self {
        Self(Duration::from_millis(100))
    }
}

impl Patience {
    pub(super) fn next(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(Duration::from_secs(8));
        wait.mul_f64(rand::random_range(0.5..1.0))
    }
}

/// One connection, made anew when it breaks.
pub(super) struct Connected {
    plan: Arc<Plan>,
    part: &'static str,
    client: Option<Arc<Client>>,
    patience: Patience,
}

impl Connected {
    pub(super) fn new(plan: Arc<Plan>, part: &'static str) -> Self {
        Self { plan, part, client: None, patience: Patience::default() }
    }

    /// Returns the connection, made if need be; waits for the database as long as it takes, or until `until`.
    pub(super) async fn client(&mut self, until: &CancellationToken) -> Option<Arc<Client>> {
        while self.client.as_ref().is_none_or(|client| client.is_closed()) {
            self.client = None;
            match self.plan.vtq.dedicated().await {
                Ok(dedicated) => {
                    // Not yet a proof: a standby lets us in too. See `worked`.
                    self.client = Some(Arc::new(dedicated.spawn().0));
                }
                Err(error) => {
                    self.plan.health.down(self.part, &error);
                    tokio::select! {
                        () = until.cancelled() => return None,
                        () = tokio::time::sleep(self.patience.next()) => {}
                    }
                }
            }
        }
        self.client.clone()
    }

    /// Gives the connection up; the next one that asks makes a new one.
    pub(super) fn rest(&mut self) {
        self.client = None;
    }

    /// Waits for a verb on the connection, as long as the statement limit allows.
    ///
    /// The settler carries the heartbeat as well, and has no longer than until the next one is due.
    pub(super) async fn bounded<T>(&self, what: &str, verb: impl Future<Output = Result<T>>) -> Result<T> {
        let mut limit = self.plan.vtq.statement_limit();
        if self.part == SETTLE {
            limit = limit.min(self.plan.heartbeat().max(LEAST_LIMIT));
        }
        tokio::time::timeout(limit, verb).await.unwrap_or_else(|_| Err(Error::timeout(what, limit)))
    }

    /// Takes note of an error; a wait is due before the next try when it says so.
    ///
    /// A connection on which a statement did not come back is dropped: the next one would wait behind it. So is one to
    /// a server that has become read-only: another host may be the primary now.
    pub(super) fn failed(&mut self, error: &Error) -> Option<Duration> {
        if !error.is_retryable() {
            return None;
        }
        self.plan.health.down(self.part, error);
        if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout) {
            self.client = None;
        }
        Some(self.patience.next())
    }

    /// Takes note that a statement came back.
    pub(super) fn worked(&mut self) {
        self.patience = Patience::default();
        self.plan.health.up(self.part);
    }
}

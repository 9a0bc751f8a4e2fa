//! Before a message starts that may kill its worker: nothing is left in this process that would die with it, and the
//! database knows that it starts.
//!
//! Else its neighbours that wait for a slot would lapse with it again and again, and be dead letters without ever having
//! run; and the suspect, which dies too soon for a heartbeat, would count as never started.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::plan::Plan;
use super::settle::{Ended, Verdict};
use crate::message::Lease;

/// Gives back what waits, and has the suspect marked as started. Returns when both are in the database, when the
/// suspect is lost or given back itself, or when the worker closes.
pub(super) async fn make_way(plan: &Arc<Plan>, queue: usize, lease: Lease) {
    for capsule in &plan.capsules {
        capsule.clear();
    }
    let waiting = plan.flights().waiting();
    for (of, other, attempt) in waiting {
        if (of, other) != (queue, lease) {
            plan.ended(of, other, attempt, Duration::ZERO, Verdict::Release("made way for a suspect".into()));
        }
    }
    let marked = CancellationToken::new();
    let Some(cancel) = plan.flights().get(queue, lease).map(|flight| flight.cancel.clone()) else { return };
    let verdict = Verdict::Mark(marked.clone());
    // The settler ends after the last run, which this one is before.
    let _ = plan.outcomes.send(Ended { queue, lease, attempt: 0, ran: Duration::ZERO, verdict });
    tokio::select! {
        () = marked.cancelled() => {}
        _ = cancel.wait() => {}
        () = plan.close.cancelled() => {}
    }
}

//! How what was looked up shows itself in logs: without bodies and headers, and without texts that may quote them.

use std::fmt;

use super::{Attempt, DeadLetter, DeadLetterDetail, Metrics};

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("queue", &self.queue)
            .field("ready", &self.ready)
            .field("in_flight", &self.in_flight)
            .field("delayed", &self.delayed)
            .field("retrying", &self.retrying)
            .field("waiting", &self.waiting)
            .field("exhausted", &self.exhausted)
            .field("expired", &self.expired)
            .field("dead", &self.dead)
            .field("oldest_ready_age", &self.oldest_ready_age)
            .field("oldest_dead_age", &self.oldest_dead_age)
            .field("sent_total", &self.sent_total)
            .field("is_paused", &self.is_paused)
            .field("paused_until", &self.paused_until)
            .field("table_bytes", &self.table_bytes)
            .field("is_estimated", &self.is_estimated)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("id", &self.id)
            .field("dead_lettered_at", &self.dead_lettered_at)
            .field("enqueued_at", &self.enqueued_at)
            .field("attempts", &self.attempts)
            .field("read_ct", &self.read_ct)
            .field("redrives", &self.redrives)
            .field("reason", &self.reason)
            .field("error_class", &self.error_class)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DeadLetterDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetterDetail")
            .field("id", &self.id)
            .field("dead_lettered_at", &self.dead_lettered_at)
            .field("enqueued_at", &self.enqueued_at)
            .field("read_ct", &self.read_ct)
            .field("headers_bytes", &self.headers.get().len())
            .field("body_bytes", &self.body.get().len())
            .finish()
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("read_ct", &self.read_ct)
            .field("attempt", &self.attempt)
            .field("outcome", &self.outcome)
            .field("started_at", &self.started_at)
            .field("ended_at", &self.ended_at)
            .field("visible_at", &self.visible_at)
            .field("error_class", &self.error_class)
            .field("error_code", &self.error_code)
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}

//! How what was looked up shows itself in logs: without bodies and headers, and without texts that may quote them.

use std::fmt;

use super::{Attempt, DeadLetter, DeadLetterDetail};

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

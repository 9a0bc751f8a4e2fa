//! Backoff as data. The arithmetic is `vtq.backoff` in SQL, so that every client backs off alike.

use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The delay before the next run, as a function of the attempt that failed.
///
/// What is not set is the queue's, and what the queue does not set the default's: exponential, from 5 s, at most
/// 300 s, with a jitter of 15 percent either way: about 5, 10, 20, 40 s.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Backoff {
    kind: Option<&'static str>,
    base: Option<Duration>,
    max: Option<Duration>,
    jitter: Option<Jitter>,
    delays: Option<Vec<Duration>>,
    on_deadline: Option<OnDeadline>,
}

/// What becomes of a failed message whose backoff would end past its `expires_at` or `retry_until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDeadline {
    /// It moves to the dead letters at once, with its error.
    Dead,
    /// It waits less, so that one last try fits, shortly before the deadline.
    Clamp,
}

/// The random part of a backoff, so that what failed together does not come back together.
///
/// "Equal" and "full" are the terms of
/// <https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// No random part.
    None,
    /// Up to this fraction of the delay, either way; 0 to 1.
    Fraction(f64),
    /// Anywhere from half the delay to all of it.
    Equal,
    /// Anywhere from nothing to all of the delay.
    Full,
}

impl Backoff {
    /// Doubles from `base` on: the delay after failed attempt n is `base * 2^(n-1)`.
    pub fn exponential(base: Duration) -> Self {
        Self { kind: Some("exponential"), base: Some(base), ..Self::default() }
    }

    /// Grows by `base` each time.
    pub fn linear(base: Duration) -> Self {
        Self { kind: Some("linear"), base: Some(base), ..Self::default() }
    }

    /// Waits the same each time.
    pub fn fixed(delay: Duration) -> Self {
        Self { kind: Some("fixed"), base: Some(delay), ..Self::default() }
    }

    /// Waits each of these in turn, and then the last one again and again. 1 to 1000 delays.
    pub fn list(delays: impl IntoIterator<Item = Duration>) -> Self {
        Self { kind: Some("list"), delays: Some(delays.into_iter().collect()), ..Self::default() }
    }

    /// Sets the longest delay, jitter included; for exponential and linear backoff. Default: 300 s.
    pub fn max(mut self, max: Duration) -> Self {
        self.max = Some(max);
        self
    }

    /// Sets the random part. Default: 15 percent either way.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = Some(jitter);
        self
    }

    /// Sets what becomes of a message whose wait would end past its deadline. Default: it is dead.
    pub fn on_deadline(mut self, choice: OnDeadline) -> Self {
        self.on_deadline = Some(choice);
        self
    }
}

impl Serialize for Backoff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(kind) = self.kind {
            map.serialize_entry("kind", kind)?;
        }
        if let Some(base) = self.base {
            map.serialize_entry("base", &base.as_secs_f64())?;
        }
        if let Some(max) = self.max {
            map.serialize_entry("max", &max.as_secs_f64())?;
        }
        match self.jitter {
            None => {}
            Some(Jitter::None) => map.serialize_entry("jitter", "none")?,
            Some(Jitter::Equal) => map.serialize_entry("jitter", "equal")?,
            Some(Jitter::Full) => map.serialize_entry("jitter", "full")?,
            Some(Jitter::Fraction(fraction)) => map.serialize_entry("jitter", &fraction)?,
        }
        if let Some(delays) = &self.delays {
            let seconds: Vec<f64> = delays.iter().map(Duration::as_secs_f64).collect();
            map.serialize_entry("delays", &seconds)?;
        }
        match self.on_deadline {
            None => {}
            Some(OnDeadline::Dead) => map.serialize_entry("on_deadline", "dead")?,
            Some(OnDeadline::Clamp) => map.serialize_entry("on_deadline", "clamp")?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_written() {
        let backoff = Backoff::exponential(Duration::from_millis(100))
            .jitter(Jitter::Equal)
            .on_deadline(OnDeadline::Clamp);

        let json = serde_json::to_string(&backoff).expect("a backoff is plain data");

        assert_eq!(json, r#"{"kind":"exponential","base":0.1,"jitter":"equal","on_deadline":"clamp"}"#);
    }
}

//! The slots of a capsule, the messages that wait for one, and how many are worth fetching.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::handler::AnyHandler;
use super::plan::lock;
use crate::message::Message;

/// How far ahead of the handlers messages are fetched, for each worker that takes turns: as many as they handle in this
/// time. Slow handlers get nothing ahead, so that what waits stays visible to other workers.
const AHEAD: Duration = Duration::from_millis(20);
const MOST_AHEAD: usize = 1000;
/// How many outcomes may wait to be recorded before fetching pauses.
const MOST_UNSETTLED: usize = 2000;

/// A capsule at work: its slots, and the messages that wait for one.
#[derive(Debug)]
pub(super) struct Slots {
    /// The queues, by their place in the plan, the one served first in front.
    pub(super) queues: Vec<usize>,
    pub(super) concurrency: usize,
    pub(super) handler: Arc<dyn AnyHandler>,
    state: Mutex<SlotState>,
}

#[derive(Debug)]
struct SlotState {
    waiting: VecDeque<Delivery>,
    /// So many may wait without being too few.
    enough: usize,
    running: usize,
    ended: u64,
    /// Runs a second, smoothed.
    rate: f64,
    measured_at: Instant,
    measured_ended: u64,
}

/// A message on its way to a handler.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) queue: usize,
    pub(super) message: Message,
}

impl Slots {
    pub(super) fn new(queues: Vec<usize>, concurrency: usize, handler: Arc<dyn AnyHandler>) -> Self {
        let state = SlotState {
            waiting: VecDeque::new(),
            enough: 0,
            running: 0,
            ended: 0,
            rate: 0.0,
            measured_at: Instant::now(),
            measured_ended: 0,
        };
        Self { queues, concurrency, handler, state: Mutex::new(state) }
    }

    /// How many messages it is worth to fetch now: none while more than half of what is fetched ahead still waits, so
    /// that reads are few and large. Where workers take turns, it lasts until the next one.
    pub(super) fn room(&self, held: usize, turns: u32) -> usize {
        let mut state = lock(&self.state);
        state.measure();
        let ahead = ((state.rate * (AHEAD * turns).as_secs_f64()) as usize).min(MOST_AHEAD);
        state.enough = ahead / 2;
        if state.waiting.len() > state.enough {
            return 0;
        }
        let slots = (self.concurrency + ahead).saturating_sub(state.running + state.waiting.len());
        slots.min((self.concurrency + ahead + MOST_UNSETTLED).saturating_sub(held))
    }

    /// Takes messages in, in their order.
    pub(super) fn accept(&self, deliveries: impl IntoIterator<Item = Delivery>) {
        lock(&self.state).waiting.extend(deliveries);
    }

    /// Takes a slot for the first message that waits; `None` when there is no slot or no message.
    pub(super) fn begin(&self) -> Option<Delivery> {
        let mut state = lock(&self.state);
        if state.running >= self.concurrency {
            return None;
        }
        let delivery = state.waiting.pop_front()?;
        state.running += 1;
        Some(delivery)
    }

    /// Gives the slot of a run that ended to the next message, or back; says whether it may be worth to fetch more.
    pub(super) fn next(&self) -> (Option<Delivery>, bool) {
        let mut state = lock(&self.state);
        state.ended += 1;
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.running -= 1;
        }
        (next, state.waiting.len() <= state.enough)
    }

    /// Forgets what waits for a slot.
    pub(super) fn clear(&self) {
        lock(&self.state).waiting.clear();
    }
}

impl SlotState {
    fn measure(&mut self) {
        const SPAN: Duration = Duration::from_millis(50);
        let elapsed = self.measured_at.elapsed();
        if elapsed < SPAN {
            return;
        }
        let now = (self.ended - self.measured_ended) as f64 / elapsed.as_secs_f64();
        self.rate = (self.rate + now) / 2.0;
        (self.measured_at, self.measured_ended) = (Instant::now(), self.ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{Outcome, handler_fn};

    /// Four slots whose handlers get through so many messages a second.
    fn slots(rate: f64) -> Slots {
        let handler = Arc::new(handler_fn(|_, _| async { Outcome::Done }));
        let slots = Slots::new(vec![0], 4, handler);
        let mut state = lock(&slots.state);
        // Not measured anew before then.
        state.measured_at += Duration::from_secs(3600);
        state.rate = rate;
        drop(state);
        slots
    }

    #[test]
    fn slow_handlers_get_nothing_ahead() {
        assert_eq!(slots(0.0).room(0, 1), 4);
        assert_eq!(slots(40.0).room(0, 1), 4);
    }

    #[test]
    fn what_lies_ahead_lasts_until_the_next_turn() {
        assert_eq!(slots(1000.0).room(0, 1), 4 + 20);
        assert_eq!(slots(1000.0).room(0, 8), 4 + 160);
        assert_eq!(slots(1e9).room(0, 8), 4 + MOST_AHEAD);
        // Of a queue with a limit for what is in flight.
        assert_eq!(slots(1000.0).room(0, 0), 4);
    }

    #[test]
    fn too_much_that_waits_to_be_recorded_leaves_no_room() {
        assert_eq!(slots(0.0).room(MOST_UNSETTLED, 1), 4);
        assert_eq!(slots(0.0).room(MOST_UNSETTLED + 1, 1), 3);
        assert_eq!(slots(0.0).room(MOST_UNSETTLED + 4, 1), 0);
    }
}

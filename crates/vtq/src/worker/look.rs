//! How far back a read looks. Most begin behind what this worker was given last; what has committed late, or was handed
//! out and is due again, lies before that.

use std::time::{Duration, Instant};

use crate::read::{Floors, Place};

/// A read from a moment before the floors may cost a tenth of the time.
const NEAR_SHARE: u32 = 10;
/// One from the front a hundredth: behind a transaction that holds back vacuum it walks past every message of minutes.
const FRONT_SHARE: u32 = 100;
/// Neither need come more often than this.
const LEAST_BETWEEN: Duration = Duration::from_millis(20);
/// A read that took long for another reason, such as a huge message, must not put off the next for minutes.
const MOST_BETWEEN: Duration = Duration::from_secs(10);
/// How long a moment is: longer than most transactions that send.
const MOMENT: chrono::TimeDelta = chrono::TimeDelta::seconds(1);

/// Where a read begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Behind what this worker was given, and behind what the others were.
    Floors,
    /// A moment before what this worker was given.
    Near,
    /// At the front of the line.
    Front,
}

impl Depth {
    /// The floors that such a read passes on; none for the front.
    pub(super) fn floors(self, given: &[Option<Place>]) -> Option<Floors> {
        let near = |place: &Place| (Some(place.0 - MOMENT), None);
        let floor = |place: &Place| (Some(place.0), Some(place.1));
        // Where this worker was given nothing, what the others were is all there is to go by.
        let nothing = (None, Some(0));
        match self {
            Self::Floors => Some(given.iter().map(|place| place.as_ref().map_or(nothing, floor)).collect()),
            Self::Near => Some(given.iter().map(|place| place.as_ref().map_or(nothing, near)).collect()),
            Self::Front => None,
        }
    }
}

/// What came of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// Fewer messages than it asked for.
    Short,
    /// As many.
    Full,
    /// As many, and the last of them lies before what this worker was given earlier.
    Behind,
}

/// When a queue is next read from further back.
#[derive(Debug, Default)]
pub(super) struct Looks {
    near_due: Option<Instant>,
    front_due: Option<Instant>,
    /// Whether the last read from further back was full.
    is_unfinished: bool,
}

impl Looks {
    /// How far back the next read looks.
    pub(super) fn next(&self, now: Instant) -> Depth {
        let is_due = |due: Option<Instant>| due.is_none_or(|due| due <= now);
        if is_due(self.front_due) {
            Depth::Front
        } else if is_due(self.near_due) {
            Depth::Near
        } else {
            Depth::Floors
        }
    }

    /// Takes note of a read that ended `now` and took so long, or the time of all workers together: the shares are of
    /// that. What a read left behind is read at once where no read from the floors would find it, or where there is
    /// nothing else to do.
    pub(super) fn took(&mut self, depth: Depth, came: Came, now: Instant, took: Duration) {
        let due = |share: u32| Some(now + (took * share).clamp(LEAST_BETWEEN, MOST_BETWEEN));
        let next = |share: u32| if came == Came::Behind { None } else { due(share) };
        match depth {
            Depth::Floors => {
                if self.is_unfinished && came == Came::Short {
                    self.near_due = None;
                }
                return;
            }
            Depth::Near => self.near_due = next(NEAR_SHARE),
            Depth::Front => (self.near_due, self.front_due) = (due(NEAR_SHARE), next(FRONT_SHARE)),
        }
        self.is_unfinished = came != Came::Short;
    }

    /// Has the next read begin at the front.
    pub(super) fn rewind(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_front_comes_first_then_what_is_near_then_the_floors() {
        let mut looks = Looks::default();
        let now = Instant::now();
        assert_eq!(looks.next(now), Depth::Front);

        looks.took(Depth::Front, Came::Short, now, 4 * MS);
        assert_eq!(looks.next(now + 39 * MS), Depth::Floors);
        assert_eq!(looks.next(now + 40 * MS), Depth::Near);
        assert_eq!(looks.next(now + 400 * MS), Depth::Front);

        looks.rewind();
        assert_eq!(looks.next(now), Depth::Front);
    }

    #[test]
    fn what_takes_long_comes_seldom_and_yet_it_comes() {
        let mut looks = Looks::default();
        let now = Instant::now();

        looks.took(Depth::Front, Came::Short, now, 40 * MS);
        assert_eq!(looks.next(now + 399 * MS), Depth::Floors);
        assert_eq!(looks.next(now + 400 * MS), Depth::Near);

        looks.took(Depth::Front, Came::Short, now, 60_000 * MS);
        assert_eq!(looks.next(now + MOST_BETWEEN), Depth::Front);
    }

    #[test]
    fn what_left_messages_behind_the_floors_is_followed_by_the_same_at_once() {
        let mut looks = Looks::default();
        let now = Instant::now();

        looks.took(Depth::Front, Came::Behind, now, 4 * MS);
        assert_eq!(looks.next(now), Depth::Front);
        looks.took(Depth::Front, Came::Short, now, 4 * MS);
        looks.took(Depth::Near, Came::Behind, now, 4 * MS);
        assert_eq!(looks.next(now), Depth::Near);
    }

    #[test]
    fn where_nothing_else_is_to_be_had_a_full_look_is_followed_by_another() {
        let mut looks = Looks::default();
        let now = Instant::now();

        looks.took(Depth::Front, Came::Full, now, 4 * MS);
        looks.took(Depth::Floors, Came::Full, now, 4 * MS);
        assert_eq!(looks.next(now), Depth::Floors);
        looks.took(Depth::Floors, Came::Short, now, 4 * MS);
        assert_eq!(looks.next(now), Depth::Near);

        looks.took(Depth::Near, Came::Short, now, 4 * MS);
        looks.took(Depth::Floors, Came::Short, now, 4 * MS);
        assert_eq!(looks.next(now), Depth::Floors);
    }

    #[test]
    fn a_worker_that_was_given_nothing_goes_by_what_the_others_were() {
        let place = (chrono::DateTime::UNIX_EPOCH, 7);

        let floors = Depth::Floors.floors(&[Some(place), None]).unwrap();
        assert_eq!(floors.msg_id, [Some(7), Some(0)]);
        assert_eq!(floors.ready_at, [Some(place.0), None]);

        let near = Depth::Near.floors(&[Some(place), None]).unwrap();
        assert_eq!(near.msg_id, [None, Some(0)]);
        assert_eq!(near.ready_at, [Some(place.0 - MOMENT), None]);

        assert!(Depth::Front.floors(&[Some(place)]).is_none());
    }
}

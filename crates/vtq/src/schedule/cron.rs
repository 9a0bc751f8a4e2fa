//! Cron expressions: when their ticks are, also on the days when clocks are changed.

use std::fmt;

use chrono::offset::LocalResult;
use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use croner::parser::{CronParser, Seconds};

use crate::error::{Error, Result};

/// The longest stretch that a clock was ever put forward by is a day, on some islands.
const LONGEST_GAP: TimeDelta = TimeDelta::hours(49);
/// How much of a refused expression an error shows.
const SHOWN_CHARS: usize = 80;

/// A cron expression in a time zone.
///
/// Five fields (minute, hour, day of the month, month, day of the week), six with seconds in front, seven with a year
/// behind, or a nickname such as `@daily`. Days of the month and of the week that are both given are alternatives.
///
/// An expression whose hours are named (`30 2 * * *`, `0 9-17 * * *`) goes by the clock on the wall: every time that
/// it names is one tick a day. One that the clock leaves out is made up for when the clock goes on; one that the clock
/// shows twice counts the first time. An expression with `*` in the hours goes by the time that passes.
///
/// # Examples
/// ```
/// let cron = vtq::Cron::new("30 2 * * *", "Europe/Berlin")?;
/// let eve = "2026-03-28T12:00:00Z".parse().expect("an instant");
/// // On that day 02:30 is left out, and 03:00 follows 01:59.
/// assert_eq!(cron.next_after(eve).expect("a tick").to_rfc3339(), "2026-03-29T01:00:00+00:00");
/// # Ok::<(), vtq::Error>(())
/// ```
#[derive(Clone)]
pub struct Cron {
    expression: String,
    timezone: Tz,
    parsed: croner::Cron,
    /// Whether its times are those on the wall, each once a day, rather than a count of the time that passes.
    is_by_the_clock: bool,
}

impl Cron {
    /// Reads an expression, and a time zone by its name in the IANA database.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an expression that cannot be read, or
    /// that has no tick at all, such as one on February 30; and for a zone that is not known.
    pub fn new(expression: &str, timezone: &str) -> Result<Self> {
        let timezone = zone(timezone)?;
        let refuse = |why: &dyn fmt::Display| {
            let why = why.to_string();
            Error::invalid(format!(
                "cron {} is not allowed: {}",
                shown(expression),
                why.trim_end_matches('.')
            ))
        };
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        let parsed = parser.parse(expression).map_err(|error| refuse(&error))?;
        let cron = Self {
            expression: expression.into(),
            timezone,
            parsed,
            is_by_the_clock: names_hours(expression),
        };
        // A year that is past has had its ticks.
        if cron.expression.split_whitespace().count() < 7 && cron.next_after(Utc::now()).is_none() {
            return Err(refuse(&"it has no tick at all"));
        }
        Ok(cron)
    }

    /// Returns the expression as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the name of the time zone.
    pub fn timezone(&self) -> &'static str {
        self.timezone.name()
    }

    /// Returns the first tick after an instant; `None`: there is none any more.
    pub fn next_after(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        if !self.is_by_the_clock {
            let after = after.with_timezone(&self.timezone);
            return self.parsed.find_next_occurrence(&after, false).ok().map(|at| at.to_utc());
        }
        // The clock on the wall knows no zone: it is looked up as a calendar, and what it shows is dated afterwards.
        let mut wall = after.with_timezone(&self.timezone).naive_local();
        loop {
            wall = self.parsed.find_next_occurrence(&wall.and_utc(), false).ok()?.naive_utc();
            let at = self.shown_at(wall)?;
            // Not so when the clock shows this for the second time, or when the tick was made up for already.
            if at > after {
                return Some(at);
            }
        }
    }

    /// The instant at which the clock shows this, the first of two; the end of the gap when it never does.
    fn shown_at(&self, wall: NaiveDateTime) -> Option<DateTime<Utc>> {
        let until = wall + LONGEST_GAP;
        let mut later = wall;
        while later < until {
            match self.timezone.from_local_datetime(&later) {
                LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => return Some(at.to_utc()),
                // Clocks are changed at whole minutes.
                LocalResult::None => later = later.with_second(0)? + TimeDelta::minutes(1),
            }
        }
        None
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cron")
            .field("expression", &self.expression)
            .field("timezone", &self.timezone())
            .finish()
    }
}

/// Whether the field of the hours has no `*`.
fn names_hours(expression: &str) -> bool {
    let fields: Vec<&str> = expression.split_whitespace().collect();
    match fields.as_slice() {
        [nickname] => !nickname.eq_ignore_ascii_case("@hourly"),
        [_, hours, _, _, _] | [_, _, hours, ..] => !hours.contains('*'),
        _ => false,
    }
}

fn zone(name: &str) -> Result<Tz> {
    name.parse().map_err(|_| {
        let other = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name));
        let hint = match other {
            Some(zone) => format!("it is written {zone}"),
            None => "give a name of the IANA database, such as Europe/Berlin or UTC".into(),
        };
        Error::invalid(format!("timezone {} is not known: {hint}", shown(name)))
    })
}

fn shown(text: &str) -> String {
    let quoted = format!("{text:?}");
    match quoted.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &quoted[..end]),
        None => quoted,
    }
}

#[cfg(test)]
mod tests;

//! Lengths of time and instants, as people write them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Number, Value};

const RULE: &str = "give a number and a unit, such as 30s, 5m, 1h30m or 500ms; units are us, ms, s, m, h, d and w, \
                    and a bare number is seconds";

/// Units with their nanoseconds.
const UNITS: [(&str, u128); 7] = [
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
    ("d", 86_400 * 1_000_000_000),
    ("w", 604_800 * 1_000_000_000),
];

/// A length that may be `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<Duration>);

/// Reads a length of time.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let refuse = |why: &str| format!("it is not a length of time: {why}");
    if text.trim_start().starts_with('-') {
        return Err(refuse("it must not be negative"));
    }
    let nanos = nanoseconds(text).ok_or_else(|| refuse(RULE))?;
    let seconds = u64::try_from(nanos / 1_000_000_000).map_err(|_| refuse("it is too long for any clock"))?;
    let rest = u32::try_from(nanos % 1_000_000_000).expect("a rest of 10^9 fits");
    Ok(Duration::new(seconds, rest))
}

/// Reads a length of time, or `none`.
pub(crate) fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => length(text).map(|length| Limit(Some(length))).map_err(|why| format!("{why}; or none")),
    }
}

/// Reads an instant.
pub(crate) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text).map(|at| at.to_utc()).map_err(|_| {
        "it is not an instant: give one as RFC 3339, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00"
            .into()
    })
}

/// Writes a length as the number of seconds that an option of a queue takes, exact to the microsecond.
pub(crate) fn seconds(length: Duration) -> Value {
    let text = format!("{}.{:06}", length.as_secs(), length.subsec_micros());
    let text = text.trim_end_matches('0').trim_end_matches('.');
    Value::Number(text.parse::<Number>().expect("digits are a number"))
}

fn nanoseconds(text: &str) -> Option<u128> {
    let mut rest = text.trim();
    if is_number(rest) {
        return part(rest, UNITS[2].1);
    }
    let mut sum: u128 = 0;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(unit_at);
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum = sum.checked_add(part(number, *factor)?)?;
        rest = tail.trim_start();
    }
    (!text.trim().is_empty()).then_some(sum)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// `number` times `factor`, by whole numbers, so that 0.1 is a tenth.
fn part(number: &str, factor: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) || fraction.is_empty() || fraction.len() > 12 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let whole: u128 = whole.parse().ok()?;
    let fraction: u128 = fraction.parse().ok()?;
    whole.checked_mul(factor)?.checked_add(fraction * factor / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_exactly() {
        for (text, micros) in [
            ("30s", 30_000_000),
            ("5m", 300_000_000),
            ("1h30m", 5_400_000_000),
            ("1h 30m", 5_400_000_000),
            ("500ms", 500_000),
            ("0.1", 100_000),
            ("7", 7_000_000),
            ("0", 0),
            ("1.5d", 129_600_000_000),
            ("2w", 1_209_600_000_000),
            ("25us", 25),
        ] {
            assert_eq!(length(text), Ok(Duration::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_is_refused_with_the_rule() {
        for text in ["", " ", "s", "5x", "1e18", "infinity", "5 minutes", "1h30", ".5", "5.", "1..5s", "½h"]
        {
            assert!(length(text).is_err_and(|why| why.contains(RULE)), "{text}");
        }
        assert!(length("-1").is_err_and(|why| why.contains("must not be negative")));
        assert!(length(&"9".repeat(25)).is_err_and(|why| why.contains("too long")));
        assert!(length(&"9".repeat(60)).is_err());
    }

    #[test]
    fn none_is_a_limit_and_no_length() {
        assert_eq!(limit("none"), Ok(Limit(None)));
        assert_eq!(limit("15m"), Ok(Limit(Some(Duration::from_secs(900)))));
        assert!(length("none").is_err());
    }

    #[test]
    fn seconds_are_written_digit_for_digit() {
        for (micros, text) in [(30_000_000, "30"), (100_000, "0.1"), (1, "0.000001"), (0, "0")] {
            assert_eq!(seconds(Duration::from_micros(micros)).to_string(), text);
        }
    }

    #[test]
    fn instants_have_an_offset() {
        assert!(instant("2026-01-31T08:00:00Z").is_ok());
        for text in ["2026-01-31", "2026-01-31T08:00:00", "infinity", "294277-01-01T00:00:00Z", "now"] {
            assert!(instant(text).is_err(), "{text}");
        }
    }
}

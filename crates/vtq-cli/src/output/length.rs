//! Lengths of time for people.

use std::time::Duration;

/// Writes a length with its two largest units.
pub(crate) fn brief(length: Duration) -> String {
    let seconds = length.as_secs();
    let pair = |large: u64, small: u64, names: (&str, &str)| match seconds % large / small {
        0 => format!("{}{}", seconds / large, names.0),
        rest => format!("{}{} {rest}{}", seconds / large, names.0, names.1),
    };
    match seconds {
        0 if length.is_zero() => "0s".into(),
        0 if length.subsec_millis() == 0 => "<1ms".into(),
        0 => format!("{}ms", length.subsec_millis()),
        1..60 => format!("{seconds}s"),
        60..3_600 => pair(60, 1, ("m", "s")),
        3_600..86_400 => pair(3_600, 60, ("h", "m")),
        _ => pair(86_400, 3_600, ("d", "h")),
    }
}

/// Writes how long ago something was.
pub(crate) fn ago(length: Duration) -> String {
    format!("{} ago", brief(length))
}

/// Writes a length as the number that a `_ms` key in JSON takes.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_are_enough() {
        for (millis, text) in [
            (0, "0s"),
            (350, "350ms"),
            (1_999, "1s"),
            (60_000, "1m"),
            (61_000, "1m 1s"),
            (3_600_000, "1h"),
            (7_980_000, "2h 13m"),
            (90_000_000, "1d 1h"),
            (8_640_000_000, "100d"),
        ] {
            assert_eq!(brief(Duration::from_millis(millis)), text);
        }
        assert_eq!(brief(Duration::from_micros(3)), "<1ms");
    }
}

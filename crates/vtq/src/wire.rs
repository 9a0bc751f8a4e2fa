//! How values cross to PostgreSQL and back: lengths of time, and JSON kept as the text it is.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type Boxed = Box<dyn StdError + Sync + Send>;

/// A length of time as a PostgreSQL `interval`.
///
/// A length past the range of an interval is sent as the longest one, which every verb refuses with its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval(pub(crate) Duration);

impl ToSql for Interval {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Boxed> {
        let micros = i64::try_from(self.0.as_micros()).unwrap_or(i64::MAX - 1);
        out.extend_from_slice(&micros.to_be_bytes());
        // Days and months stay 0: a length of vtq is a number of seconds, never a calendar's.
        out.extend_from_slice(&[0; 8]);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::INTERVAL
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Interval {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Boxed> {
        const DAY: i64 = 24 * 3600 * 1_000_000;
        let micros = i64::from_be_bytes(raw.get(..8).ok_or("short interval")?.try_into()?);
        let days = i32::from_be_bytes(raw.get(8..12).ok_or("short interval")?.try_into()?);
        let months = i32::from_be_bytes(raw.get(12..16).ok_or("short interval")?.try_into()?);
        let days = i64::from(days) + 30 * i64::from(months);
        let micros = days
            .checked_mul(DAY)
            .and_then(|whole| whole.checked_add(micros))
            .ok_or("interval out of range")?;
        Ok(Self(Duration::from_micros(micros.max(0).unsigned_abs())))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::INTERVAL
    }
}

/// JSON text on its way into a `jsonb`.
#[derive(Clone, Copy)]
pub(crate) struct Json<'a>(pub(crate) &'a str);

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The driver asks it of every parameter.
        write!(f, "{} bytes of JSON", self.0.len())
    }
}

impl ToSql for Json<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Boxed> {
        // The version byte of the binary jsonb format; JSON text follows.
        out.extend_from_slice(&[1]);
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }

    to_sql_checked!();
}

/// JSON text out of a `jsonb`, digit for digit.
pub(crate) struct RawJson(pub(crate) Box<RawValue>);

impl<'a> FromSql<'a> for RawJson {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Boxed> {
        let text = match raw.split_first() {
            Some((1, text)) => std::str::from_utf8(text)?,
            _ => return Err("unknown version of the binary jsonb format".into()),
        };
        Ok(Self(RawValue::from_string(text.to_owned())?))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(length: Duration) -> Duration {
        let mut out = BytesMut::new();
        Interval(length).to_sql(&Type::INTERVAL, &mut out).expect("an interval can always be written");
        Interval::from_sql(&Type::INTERVAL, &out).expect("what was written can be read").0
    }

    #[test]
    fn lengths_keep_their_microseconds() {
        for length in [Duration::ZERO, Duration::from_micros(1), Duration::from_secs(36_500 * 86_400)] {
            assert_eq!(round_trip(length), length);
        }
    }

    #[test]
    fn an_endless_length_is_sent_as_the_longest() {
        assert!(round_trip(Duration::MAX) > Duration::from_secs(36_500 * 86_400));
    }

    #[test]
    fn days_and_months_are_read_as_lengths() {
        let mut raw = 1_000_000_i64.to_be_bytes().to_vec();
        raw.extend(2_i32.to_be_bytes());
        raw.extend(1_i32.to_be_bytes());

        let read = Interval::from_sql(&Type::INTERVAL, &raw).expect("sixteen bytes are an interval");

        assert_eq!(read.0, Duration::from_secs(1 + 32 * 86_400));
    }
}

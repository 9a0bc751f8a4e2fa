//! Limits of a queue, as people write them.

use serde_json::{Value, json};

use super::length::{length, seconds};

/// A number that may be `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumberOrNone(pub(crate) Option<u32>);

/// A rate that may be `none`, as an option of a queue takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RateOrNone(pub(crate) Value);

/// Reads a number, or `none`.
pub(crate) fn number_or_none(text: &str) -> Result<NumberOrNone, String> {
    match text {
        "none" => Ok(NumberOrNone(None)),
        _ => text
            .parse()
            .map(|number| NumberOrNone(Some(number)))
            .map_err(|_| "give a whole number, or none".into()),
    }
}

/// Reads a rate such as `100/1m`, or `none`.
pub(crate) fn rate(text: &str) -> Result<RateOrNone, String> {
    if text == "none" {
        return Ok(RateOrNone(Value::Null));
    }
    let refusal = || "it is not a rate: give a whole number and a length, such as 100/1m; or none".to_owned();
    let (number, interval) = text.split_once('/').ok_or_else(refusal)?;
    let number: u32 = number.trim().parse().map_err(|_| refusal())?;
    let interval = length(interval.trim())?;
    Ok(RateOrNone(json!({"limit": number, "interval": seconds(interval)})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_and_a_length() {
        assert_eq!(rate("100/1m"), Ok(RateOrNone(json!({"limit": 100, "interval": 60}))));
        assert_eq!(rate("none"), Ok(RateOrNone(Value::Null)));
        for wrong in ["100", "/1m", "x/1m", "1.5/1m", "-1/1m"] {
            assert!(rate(wrong).is_err_and(|why| why.contains("100/1m")), "{wrong}");
        }
        assert!(rate("5/soon").is_err_and(|why| why.contains("length of time")));
    }
}

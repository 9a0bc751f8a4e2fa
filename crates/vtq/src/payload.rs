//! What a `jsonb` cannot hold is refused here, with the place in the message, before anything is sent.
//!
//! PostgreSQL would refuse it too, but by a text that names neither the message nor the place.

use serde::Serialize;

use crate::error::{Error, Result};

/// The longest JSON text that is sent as one message or as its headers.
///
/// `jsonb` itself ends at 256 MiB, and a row is held in memory several times on its way.
pub const MAX_MESSAGE_BYTES: usize = 100 * 1024 * 1024;

/// The digits that a PostgreSQL `numeric` has before and after its point.
/// <https://www.postgresql.org/docs/current/datatype-numeric.html>
const WHOLE_DIGITS: i64 = 131_072;
const FRACTION_DIGITS: i64 = 16_383;

/// Writes a value as JSON and checks it.
pub(crate) fn encode(what: &str, value: &(impl Serialize + ?Sized)) -> Result<String> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::payload(format!("{what} cannot be written as JSON: {error}")))?;
    check(what, &text)?;
    Ok(text)
}

/// Checks JSON text that comes from a caller: that it is JSON, and that a `jsonb` can hold it.
pub(crate) fn check_text(what: &str, text: &str) -> Result<()> {
    if let Err(error) = serde_json::from_str::<&serde_json::value::RawValue>(text) {
        return Err(Error::payload(format!("{what} is not JSON: {error}")));
    }
    check(what, text)
}

/// Checks text that is JSON already.
fn check(what: &str, text: &str) -> Result<()> {
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(Error::payload(format!(
            "{what} is {} bytes long, and must not be longer than {MAX_MESSAGE_BYTES}",
            text.len()
        )));
    }
    match Scan::new(text).first_fault() {
        None => Ok(()),
        Some((path, fault)) => Err(Error::payload(format!("{what} holds {fault} at {path}"))),
    }
}

/// What `serde` says of a value that does not fit its type, without the value: that is a message's, and the text may end
/// up in a log. Names that the type itself gives stay.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = match error.line() {
        0 => String::new(),
        line => format!(" at line {line} column {}", error.column()),
    };
    // Of text that is no JSON only the place is told anyway.
    let is_harmless = !error.is_data()
        || ["missing field `", "duplicate field `"].iter().any(|start| text.starts_with(start));
    if is_harmless {
        return text;
    }
    let known = ["invalid type", "invalid value", "invalid length", "unknown field", "unknown variant"];
    let Some(start) = known.iter().find(|start| text.starts_with(**start)) else {
        return format!("it does not fit{place}");
    };
    // What was expected stands last, and holds the place.
    match text.rfind(", expected ") {
        Some(at) => format!("{start}{}", &text[at..]),
        None => format!("{start}{place}"),
    }
}

/// A walk over JSON text that knows where it is.
struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    path: Vec<Step>,
}

enum Step {
    Key { start: usize, end: usize, expects_key: bool },
    Index(usize),
}

type Fault = (String, &'static str);

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, path: Vec::new() }
    }

    /// The text is JSON, so its brackets match and its strings end: only strings and numbers are looked into.
    fn first_fault(mut self) -> Option<Fault> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'{' => self.path.push(Step::Key { start: 0, end: 0, expects_key: true }),
                b'[' => self.path.push(Step::Index(0)),
                b'}' | b']' => {
                    self.path.pop();
                }
                b',' => self.next_member(),
                b':' => {
                    if let Some(Step::Key { expects_key, .. }) = self.path.last_mut() {
                        *expects_key = false;
                    }
                }
                b'"' => {
                    let start = self.at + 1;
                    let fault = self.string();
                    self.name_key(start);
                    if let Some(fault) = fault {
                        return Some((self.place(), fault));
                    }
                    continue;
                }
                b'-' | b'0'..=b'9' => {
                    if self.number() {
                        return Some((
                            self.place(),
                            "a number that is out of range for PostgreSQL's numeric",
                        ));
                    }
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    fn next_member(&mut self) {
        match self.path.last_mut() {
            Some(Step::Index(index)) => *index += 1,
            Some(Step::Key { expects_key, .. }) => *expects_key = true,
            None => {}
        }
    }

    fn name_key(&mut self, from: usize) {
        let to = self.at - 1;
        if let Some(Step::Key { start, end, expects_key: true }) = self.path.last_mut() {
            (*start, *end) = (from, to);
        }
    }

    /// Leaves `at` behind the closing quote.
    fn string(&mut self) -> Option<&'static str> {
        let mut fault = None;
        self.at += 1;
        while self.bytes[self.at] != b'"' {
            if self.bytes[self.at] != b'\\' {
                self.at += 1;
                continue;
            }
            if self.bytes[self.at + 1] != b'u' {
                self.at += 2;
                continue;
            }
            let unit = self.unit(self.at);
            self.at += 6;
            fault = fault.or(match unit {
                0 => Some("a NUL character (\\u0000), which jsonb cannot store,"),
                0xD800..=0xDBFF if self.follows_low_surrogate() => {
                    self.at += 6;
                    None
                }
                0xD800..=0xDFFF => Some("half a surrogate pair, which is no character,"),
                _ => None,
            });
        }
        self.at += 1;
        fault
    }

    fn follows_low_surrogate(&self) -> bool {
        self.bytes[self.at..].starts_with(b"\\u") && (0xDC00..=0xDFFF).contains(&self.unit(self.at))
    }

    /// The code unit of the `\uXXXX` at a place; 0xFFFF where there is none.
    fn unit(&self, at: usize) -> u32 {
        let digits = self.text.get(at + 2..at + 6);
        digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xFFFF)
    }

    /// Leaves `at` behind the number; true when it is out of range.
    fn number(&mut self) -> bool {
        let start = self.at;
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        self.at += self.bytes[start..].iter().take_while(|byte| is_part(byte)).count();
        let token = &self.text[start..self.at];
        let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let Ok(exponent) = exponent.parse::<i64>() else { return true };
        let whole = whole.trim_start_matches('-').len() as i64;
        let Some(before) = whole.checked_add(exponent) else { return true };
        let Some(after) = (fraction.len() as i64).checked_sub(exponent) else { return true };
        before > WHOLE_DIGITS || after > FRACTION_DIGITS
    }

    fn place(&self) -> String {
        let mut place = String::from("$");
        for step in &self.path {
            match step {
                Step::Index(index) => place.push_str(&format!("[{index}]")),
                // A key that is a secret's name is fine to show; one of a kilobyte is not.
                Step::Key { start, end, .. } => {
                    let key: String = self.text[*start..*end].chars().take(60).collect();
                    place.push_str(&format!(".{key}"));
                }
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<String> {
        check_text("message", text).err().map(|error| error.to_string())
    }

    #[test]
    fn what_jsonb_can_hold_passes() {
        for text in [
            "null",
            "-0.5e-3",
            r#""\\u0000""#,
            r#"{"a":["\ud83d\ude00","é\n\"x\""]}"#,
            "123456789012345678901234567890.123456789",
            "1e400",
            "[]",
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
    }

    #[test]
    fn a_fault_is_named_with_its_place() {
        for (text, place) in [
            (r#"{"a":1,"b":{"c":[1,"x\u0000"]}}"#, "$.b.c[1]"),
            (r#"{"ok":"","k\u0000":1}"#, r"$.k\u0000"),
            (r#"["\ud83d"]"#, "$[0]"),
            (r#"["\ud83dx\ude00"]"#, "$[0]"),
            (r#"{"n":[0,1e999999]}"#, "$.n[1]"),
            ("1e99999999999999999999", "$"),
            ("1e-20000", "$"),
        ] {
            let refusal = refusal(text).unwrap_or_else(|| panic!("{text} passed"));
            assert!(refusal.ends_with(&format!(" at {place}")), "{text}: {refusal}");
        }
    }

    #[test]
    fn what_is_not_json_says_where() {
        assert_eq!(
            refusal("{\"a\":}").as_deref(),
            Some("message is not JSON: expected value at line 1 column 6")
        );
        assert!(refusal("").is_some());
        assert!(refusal("1 2").is_some());
    }

    #[test]
    fn what_does_not_fit_is_told_without_its_value() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "lowercase")]
        enum Shape {
            Round { size: u8 },
        }
        let cases = [
            (r#"{"round": {"size": "S3CRET, expected x"}}"#, "invalid type, expected u8 at line 1 column 39"),
            (r#"{"round": {"size": 300}}"#, "invalid value, expected u8 at line 1 column 22"),
            (r#"{"S3CRET": {}}"#, "unknown variant, expected `round` at line 1 column 9"),
            (r#"{"round": {"S3CRET": 1}}"#, "unknown field, expected `size` at line 1 column 19"),
            (r#"{"round": {}}"#, "missing field `size` at line 1 column 12"),
            (r#"{"round": "#, "EOF while parsing a value at line 1 column 10"),
        ];

        for (text, expected) in cases {
            let error = serde_json::from_str::<Shape>(text).map(|Shape::Round { size }| size).unwrap_err();
            assert_eq!(reason(&error), expected, "{text}");
        }
        let own: serde_json::Error = serde::de::Error::custom("S3CRET is no number");
        assert_eq!(reason(&own), "it does not fit");
    }
}

//! The messages of a run: whose they are, in which batch they were sent, and padding.

use serde::Deserialize;
use vtq::{Message, Outgoing};

/// The key that every message of every bench has. Whoever has no such key is somebody else's.
pub(super) const MARK: &str = "vtq_bench";

/// How far the padding of one message begins after that of the one before.
const STRIDE: usize = 37;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Writes messages of a given length.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    run: String,
    bytes: usize,
    /// Text that does not compress, or PostgreSQL would store a long message as a short one.
    noise: String,
    at: usize,
}

/// What a message says about itself.
#[derive(Deserialize)]
struct Mark<'a> {
    #[serde(borrow, rename = "vtq_bench")]
    run: &'a str,
    batch: Option<usize>,
}

/// What a message is to this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Sent in this batch while the clock ran.
    Sent(usize),
    /// Put in before.
    Backlog,
    /// None of this run's.
    Foreign,
}

impl Writer {
    /// Starts to write messages of a run, each of this many bytes.
    pub(super) fn new(run: &str, bytes: u32) -> Self {
        let bytes = bytes as usize;
        Self { run: run.to_owned(), bytes, noise: noise(bytes + 64 * STRIDE), at: 0 }
    }

    /// The length of each message.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Writes the messages of one batch.
    pub(super) fn batch(&mut self, number: usize, batch: Option<usize>) -> vtq::Result<Vec<Outgoing>> {
        (0..number).map(|_| Outgoing::from_json(self.text(batch))).collect()
    }

    fn text(&mut self, batch: Option<usize>) -> String {
        let mut text = format!("{{\"{MARK}\":\"{}\",", self.run);
        if let Some(batch) = batch {
            text.push_str(&format!("\"batch\":{batch},"));
        }
        text.push_str("\"pad\":\"");
        let length = self.bytes.saturating_sub(text.len() + 2);
        self.at = (self.at + STRIDE) % (self.noise.len() - length);
        text.push_str(&self.noise[self.at..self.at + length]);
        text.push_str("\"}");
        text
    }
}

/// Finds out where a message comes from.
pub(super) fn origin(message: &Message, run: &str) -> Origin {
    parse(message.body.get(), run)
}

fn parse(body: &str, run: &str) -> Origin {
    match serde_json::from_str::<Mark<'_>>(body) {
        Ok(mark) if mark.run == run => mark.batch.map_or(Origin::Backlog, Origin::Sent),
        _ => Origin::Foreign,
    }
}

/// Text of 64 letters that looks random; the same each time, so that runs compare.
fn noise(bytes: usize) -> String {
    let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
    let letters = std::iter::repeat_with(|| {
        // xorshift64: https://www.jstatsoft.org/article/view/v008i14
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(ALPHABET[(state >> 58) as usize])
    });
    letters.take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::bench::LEAST_PAYLOAD;

    const RUN: &str = "18c2f0a1b2c-4194304";

    #[test]
    fn a_message_has_the_length_asked_for_and_its_batch() {
        for bytes in [LEAST_PAYLOAD, 200, 5000] {
            let mut writer = Writer::new(RUN, bytes);
            for batch in [Some(0), Some(4_000_000_000), None] {
                let text = writer.text(batch);
                assert_eq!(text.len(), bytes as usize, "{text}");
                assert_eq!(parse(&text, RUN), batch.map_or(Origin::Backlog, Origin::Sent));
            }
        }
    }

    #[test]
    fn what_is_of_another_run_is_foreign() {
        let text = Writer::new(RUN, 200).text(Some(1));

        assert_eq!(parse(&text, "another"), Origin::Foreign);
        for text in ["1", "{}", "null", r#"{"vtq_bench": 1}"#] {
            assert_eq!(parse(text, RUN), Origin::Foreign, "{text}");
        }
    }

    #[test]
    fn padding_is_of_many_letters_and_differs() {
        let mut writer = Writer::new(RUN, 1000);
        let (one, other) = (writer.text(None), writer.text(None));

        assert_ne!(one, other);
        assert!(ALPHABET.iter().all(|letter| noise(10_000).as_bytes().contains(letter)));
    }
}

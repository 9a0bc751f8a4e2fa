//! Lines of input, as messages with the numbers of their lines.

use std::io::{self, BufRead, Read};
use std::thread;

use tokio::sync::mpsc;
use vtq::{MAX_MESSAGE_BYTES, Outgoing};

/// Lines read ahead while a batch is being sent.
const AHEAD: usize = 1000;
/// A batch is a single value on the wire, where a gigabyte is the end of it.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// What a file from Windows may begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A line that holds a message, or why reading ends here.
pub(super) enum Line {
    Message { number: u64, message: Outgoing, bytes: usize },
    Bad(BadLine),
    Broken(io::Error),
}

/// A line that holds no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadLine {
    pub(super) number: u64,
    pub(super) why: String,
}

impl std::fmt::Display for BadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} {}", self.number, self.why)
    }
}

/// Reads lines on a thread of its own: nothing else can wait for standard input and for the clock at once.
pub(super) struct Lines(mpsc::Receiver<Line>);

impl Lines {
    /// Starts to read, and skips the lines before `from_line` unread.
    pub(super) fn spawn(input: impl Read + Send + 'static, from_line: u64) -> Self {
        let (sender, receiver) = mpsc::channel(AHEAD);
        thread::spawn(move || {
            let mut reader = Reader::new(input, from_line);
            while let Some(line) = reader.next() {
                let is_last = !matches!(line, Line::Message { .. });
                // Nobody listens any more once the command has failed.
                if sender.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// Returns the next message; `None` at the end of the input.
    pub(super) async fn next(&mut self) -> Option<Line> {
        self.0.recv().await
    }
}

/// Turns bytes into lines, and lines into messages.
pub(super) struct Reader<R> {
    input: io::BufReader<R>,
    number: u64,
    from_line: u64,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(input: R, from_line: u64) -> Self {
        Self { input: io::BufReader::with_capacity(256 * 1024, input), number: 0, from_line }
    }

    /// Returns the next line that is not blank.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let mut bytes = Vec::new();
            // A "line" without an end must not fill the memory.
            let mut limited = (&mut self.input).take(MAX_MESSAGE_BYTES as u64 + 2);
            match limited.read_until(b'\n', &mut bytes) {
                Ok(0) => return None,
                Ok(_) => self.number += 1,
                Err(error) => return Some(Line::Broken(error)),
            }
            let is_cut = limited.limit() == 0 && bytes.last() != Some(&b'\n');
            if self.number < self.from_line && !is_cut {
                continue;
            }
            if let Some(line) = self.message(bytes, is_cut) {
                return Some(line);
            }
        }
    }

    fn message(&self, bytes: Vec<u8>, is_cut: bool) -> Option<Line> {
        let bad = |why: String| Some(Line::Bad(BadLine { number: self.number, why }));
        if is_cut {
            return bad(format!("is longer than a message may be, {MAX_MESSAGE_BYTES} bytes"));
        }
        let mut text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                return bad(format!("is not UTF-8: byte {} is wrong", error.utf8_error().valid_up_to() + 1));
            }
        };
        if self.number == 1 && text.as_bytes().starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        text.truncate(text.trim_end().len());
        if text.trim_start().is_empty() {
            return None;
        }
        let bytes = text.len();
        match Outgoing::from_json(text) {
            Ok(message) => Some(Line::Message { number: self.number, message, bytes }),
            Err(error) => bad(reworded(&error.to_string())),
        }
    }
}

/// The library speaks of a message, and of line 1 of its text: here it is a line, and only the column counts.
fn reworded(text: &str) -> String {
    text.strip_prefix("message ").unwrap_or(text).replace(" at line 1 column ", " at column ")
}

/// Messages on their way, with the lines that they come from.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) messages: Vec<Outgoing>,
    numbers: Vec<u64>,
    bytes: usize,
}

impl Batch {
    pub(super) fn push(&mut self, number: u64, message: Outgoing, bytes: usize) {
        self.numbers.push(number);
        self.messages.push(message);
        self.bytes += bytes;
    }

    pub(super) fn is_full(&self, most: u32) -> bool {
        self.messages.len() >= most as usize || self.bytes >= MOST_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.messages.len() as u64
    }

    /// The last line in it.
    pub(super) fn last_line(&self) -> Option<u64> {
        self.numbers.last().copied()
    }

    /// The line that the database refused, if that is what the error says.
    pub(super) fn blamed(&self, error: &vtq::Error) -> Option<BadLine> {
        let number = *self.numbers.get(error.index()?)?;
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        Some(BadLine { number, why: format!("was refused by the database{cause}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8], from_line: u64) -> Vec<String> {
        let mut reader = Reader::new(input, from_line);
        let mut seen = Vec::new();
        while let Some(line) = reader.next() {
            match line {
                Line::Message { number, .. } => seen.push(number.to_string()),
                Line::Bad(bad) => {
                    seen.push(bad.to_string());
                    break;
                }
                Line::Broken(error) => panic!("{error}"),
            }
        }
        seen
    }

    #[test]
    fn blank_lines_are_counted_and_skipped() {
        assert_eq!(read(b"1\n\n \t\r\n{\"a\":1}\r\n2", 1), ["1", "4", "5"]);
        assert_eq!(read(b"\xEF\xBB\xBF1\n2\n", 1), ["1", "2"]);
        assert!(read(b"", 1).is_empty());
    }

    #[test]
    fn lines_before_the_first_wanted_are_not_looked_at() {
        assert_eq!(read(b"oops\n2\n3\n", 2), ["2", "3"]);
        assert!(read(b"1\n", 5).is_empty());
    }

    #[test]
    fn a_bad_line_is_named_with_its_fault() {
        for (input, sentence) in [
            (&b"1\n{\"a\":}\n"[..], "line 2 is not JSON: expected value at column 6"),
            (b"\n\n\"\\u0000\"", "line 3 holds a NUL character (\\u0000), which jsonb cannot store, at $"),
            (b"1\n\"\xff\"\n", "line 2 is not UTF-8: byte 2 is wrong"),
            (b"{\"a\":1", "line 1 is not JSON: EOF while parsing an object at column 6"),
        ] {
            assert_eq!(read(input, 1).pop().as_deref(), Some(sentence));
        }
    }
}

//! What a command writes to stderr: passed on, and its end kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How much is kept, in bytes.
const KEPT: usize = 4096;

/// How long the end of the stream may come after the end of the command. Only a process that has left the command's
/// group can hold it open, and nobody can say for how long.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The end of a stream that is being read. Reading goes on, so that its writer never waits, until the stream ends.
#[derive(Debug)]
pub(super) struct Tail {
    kept: Arc<Mutex<Kept>>,
    reader: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    /// Begins to read; with `is_shown`, passes it all on to our own stderr.
    pub(super) fn follow(mut stream: ChildStderr, is_shown: bool) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let shared = kept.clone();
        let reader = tokio::spawn(async move {
            let mut chunk = vec![0; 8192];
            let mut out = tokio::io::stderr();
            while let Ok(length @ 1..) = stream.read(&mut chunk).await {
                shared.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk[..length]);
                if is_shown {
                    // Nobody may be there to read it; the command must not notice.
                    let _ = out.write_all(&chunk[..length]).await;
                    let _ = out.flush().await;
                }
            }
        });
        Self { kept, reader }
    }

    /// Returns the end of what a command wrote that has ended.
    pub(super) async fn text(mut self) -> String {
        let _ = timeout(LAST_WORDS, &mut self.reader).await;
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

impl Kept {
    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        if self.bytes.len() > KEPT {
            self.bytes.drain(..self.bytes.len() - KEPT);
            self.is_cut = true;
        }
    }

    fn text(&self) -> String {
        let is_middle = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        // Of a character that was cut in two, the rest is left out.
        let rest = if self.is_cut { self.bytes.iter().take(3).take_while(is_middle).count() } else { 0 };
        String::from_utf8_lossy(&self.bytes[rest..]).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_from_a_whole_character_on() {
        let mut kept = Kept::default();

        kept.push("é".repeat(KEPT).as_bytes());
        kept.push(b"!\n");

        let text = kept.text();
        assert!(text.starts_with('é') && text.ends_with("é!"), "{text}");
        assert!(text.len() <= KEPT);
    }

    #[test]
    fn what_is_no_utf8_is_marked() {
        let mut kept = Kept::default();

        kept.push(b"a\xffb");

        assert_eq!(kept.text(), "a\u{FFFD}b");
    }
}

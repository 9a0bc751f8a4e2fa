//! A long-lived child, and the talk with it.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;
use vtq::Failure;

use super::child::Child;
use super::ending::{self, Ended};

/// The longest reply, in bytes: a child that prints something else must not fill the memory.
const LONGEST_REPLY: u64 = 1024 * 1024;
/// How long the process of a child that has closed its output may take to end.
const END: Duration = Duration::from_secs(1);

/// A child with both its ends. Dropping it kills its group.
#[derive(Debug)]
pub(super) struct Talker {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// Whether it has ever given a good reply.
    pub(super) has_replied: bool,
}

/// Why there was no reply.
#[derive(Debug)]
pub(super) enum Fault {
    /// It closed its input or its output: it has ended, or is about to.
    Gone,
    /// What it said is no reply.
    Bad(String),
}

/// What a child is like that has nothing to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Waiting,
    /// It has ended.
    Gone,
    /// It has said more than it was asked, which would be taken for its next reply.
    Talking,
}

impl Talker {
    pub(super) fn new(mut child: Child) -> io::Result<Self> {
        let pipes = child.stdin().zip(child.stdout());
        let (stdin, stdout) = pipes.ok_or_else(|| io::Error::other("the new process has no pipes"))?;
        Ok(Self { child, stdin, stdout: BufReader::new(stdout), has_replied: false })
    }

    /// Writes a line and reads one. The reply may begin before all is written, so both go on at once.
    pub(super) async fn ask(&mut self, line: &[u8]) -> Result<Vec<u8>, Fault> {
        let Self { stdin, stdout, .. } = self;
        let write = async {
            stdin.write_all(line).await.map_err(|_| Fault::Gone)?;
            stdin.flush().await.map_err(|_| Fault::Gone)
        };
        let read = async {
            let mut reply = Vec::new();
            let length = stdout.take(LONGEST_REPLY).read_until(b'\n', &mut reply).await;
            match (length, reply.last()) {
                (Ok(_), Some(b'\n')) => Ok(reply),
                (Ok(length), _) if length as u64 == LONGEST_REPLY => {
                    Err(Fault::Bad(format!("the reply is longer than {LONGEST_REPLY} bytes")))
                }
                _ => Err(Fault::Gone),
            }
        };
        tokio::try_join!(write, read).map(|((), reply)| reply)
    }

    /// Looks whether it can be asked.
    pub(super) async fn mood(&mut self) -> Mood {
        // Zero: what is there already, and nothing that is still to come.
        match timeout(Duration::ZERO, self.stdout.fill_buf()).await {
            Ok(Ok(said)) if !said.is_empty() => Mood::Talking,
            Ok(_) => Mood::Gone,
            Err(_) if self.child.is_running() => Mood::Waiting,
            Err(_) => Mood::Gone,
        }
    }

    /// Ends it in the middle of what it does: its reply would be taken for that to the next message.
    pub(super) async fn stop(mut self) {
        let _ = self.child.stop().await;
    }

    /// Ends it by the end of its input; if it does not heed that, by signals.
    pub(super) async fn dismiss(self) -> io::Result<std::process::ExitStatus> {
        let Self { mut child, stdin, stdout, .. } = self;
        drop(stdin);
        let status = match timeout(END, child.wait()).await {
            Ok(status) => status,
            Err(_) => child.stop().await,
        };
        // Not before: it may have last words, and would die of a closed pipe.
        drop(stdout);
        status
    }

    /// Ends it after it gave no reply. `None` if it had left by itself, with exit code 0, between two messages, as a
    /// child does that takes only so many: then another one may be asked.
    pub(super) async fn fail(self, fault: Fault) -> Option<Ended> {
        let has_replied = self.has_replied;
        if let Fault::Bad(text) = fault {
            self.stop().await;
            return Some(Ended::failed("bad reply", Failure::new(text).class("bad reply").code("bad-reply")));
        }
        let status = self.dismiss().await;
        if has_replied && status.as_ref().is_ok_and(|status| status.success()) {
            return None;
        }
        let (class, code) = status.map_or_else(|_| ("lost".to_owned(), "lost".to_owned()), ending::name);
        let text = format!("the child ended before it had answered with a line: {class}");
        Some(Ended::failed(class.clone(), Failure::new(text).class(class).code(code)))
    }
}

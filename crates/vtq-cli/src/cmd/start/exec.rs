//! `--exec`: one process per message.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::task::JoinSet;
use vtq::{Context, Failure, Message, Outcome};

use super::child::{Child, Program};
use super::ending::{self, Ended};
use super::tail::Tail;

/// The exit codes that mean something; the first two are those of sysexits.h.
const UNDECODABLE: i32 = 65;
const TEMPORARY: i32 = 75;
const PERMANENT: i32 = 100;

/// Runs a command for each message.
#[derive(Debug, Clone)]
pub(super) struct Exec {
    pub(super) program: Program,
    /// How long a message is put off by exit code 75.
    pub(super) defer: Duration,
    /// Whether what the commands print is shown.
    pub(super) is_shown: bool,
}

impl Exec {
    pub(super) async fn run(&self, message: Message, context: &Context) -> Ended {
        let mut child = match self.start(&message, context) {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong => {
                let failure = Failure::permanent(
                    "the headers do not fit into an environment variable: use --pipe or --url for such messages",
                );
                return Ended::failed("headers too long", failure.class("headers too long"));
            }
            Err(error) => return Ended::not_started(&error, context).await,
        };
        let tail = child.stderr().map(|stderr| Tail::follow(stderr, self.is_shown));
        // Dropped, and with it ended, when the command has ended: nobody is left to read.
        let mut feed = JoinSet::new();
        if let Some(stdin) = child.stdin() {
            feed.spawn(write(stdin, message.body));
        }
        let status = tokio::select! {
            biased;
            status = child.wait() => status,
            cause = context.until_cancelled() => {
                let _ = child.stop().await;
                return Ended::cancelled(cause);
            }
        };
        let text = match tail {
            Some(tail) => tail.text().await,
            None => String::new(),
        };
        match status {
            Ok(status) => self.judge(status, &text),
            Err(error) => Ended::failed("lost", Failure::new(format!("the command was lost: {error}"))),
        }
    }

    fn start(&self, message: &Message, context: &Context) -> io::Result<Child> {
        let mut command = self.program.command();
        command
            .env("VTQ_MSG_ID", message.id().to_string())
            .env("VTQ_READ_CT", message.lease.read_ct.to_string())
            .env("VTQ_ATTEMPT", message.attempt.to_string())
            .env("VTQ_QUEUE", context.queue().as_str())
            .env("VTQ_HEADERS", message.headers.as_ref().map_or("{}", |headers| headers.get()))
            .stdout(if self.is_shown { Stdio::inherit() } else { Stdio::null() })
            .stderr(Stdio::piped());
        self.program.start(&mut command)
    }

    fn judge(&self, status: ExitStatus, stderr: &str) -> Ended {
        let (class, code) = ending::name(status);
        let text = if stderr.is_empty() {
            format!("the command ended with {class} and wrote nothing to stderr")
        } else {
            stderr.to_owned()
        };
        let (message, detail) = ending::split_tail(&text);
        let failure = match status.code() {
            Some(0) => return Ended::done(),
            Some(TEMPORARY) => {
                let outcome = Outcome::Deferred { delay: self.defer, reason: Some(message) };
                return Ended::other(class, outcome);
            }
            Some(UNDECODABLE) => Failure::undecodable(message),
            Some(PERMANENT) => Failure::permanent(message),
            _ => Failure::new(message),
        };
        let failure = failure.class(&class).code(code);
        Ended::failed(class, detail.iter().fold(failure, |failure, detail| failure.detail(detail)))
    }
}

/// Gives a command its message. It may end, or close its input, without having read it.
async fn write(mut stdin: ChildStdin, body: Box<RawValue>) {
    if stdin.write_all(body.get().as_bytes()).await.is_ok() {
        // A line, so that `read` in a shell takes it too.
        let _ = stdin.write_all(b"\n").await;
    }
}

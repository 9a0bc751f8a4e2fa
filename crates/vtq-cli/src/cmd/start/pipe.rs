//! `--pipe`: long-lived children that take a message a line and answer with a line.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use vtq::{Context, Failure, Message};

use super::child::{Child, Program};
use super::ending::{self, Ended};
use super::reply;

/// The longest reply, in bytes: a child that prints something else must not fill the memory.
const LONGEST_REPLY: u64 = 1024 * 1024;
/// How long the process of a child that has closed its output may take to end.
const END: Duration = Duration::from_secs(1);
/// The wait before a new child when the last one died without a single good reply; it doubles, up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Hands messages to children, one at a time each: there are never more children than slots.
#[derive(Debug, Clone)]
pub(super) struct Pipe {
    program: Program,
    defer: Duration,
    is_shown: bool,
    idle: Arc<Mutex<Idle>>,
}

/// The children that have nothing to do, and how new ones are to be started.
#[derive(Debug, Default)]
struct Idle {
    children: Vec<Talker>,
    /// Children in a row that died without a good reply.
    deaths: u32,
    start_at: Option<Instant>,
}

/// A child, with both its ends.
#[derive(Debug)]
struct Talker {
    child: Child,
    has_replied: bool,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// Why a child gave no reply.
enum Fault {
    /// It closed its input or its output: it has ended, or is about to.
    Gone,
    /// It said something that is no reply.
    Bad(String),
}

impl Pipe {
    pub(super) fn new(program: Program, defer: Duration, is_shown: bool) -> Self {
        Self { program, defer, is_shown, idle: Arc::default() }
    }

    /// The same command, with children of its own.
    pub(super) fn sibling(&self) -> Self {
        Self { idle: Arc::default(), ..self.clone() }
    }

    pub(super) async fn run(&self, message: Message, context: &Context) -> Ended {
        let mut talker = tokio::select! {
            biased;
            cause = context.until_cancelled() => return Ended::cancelled(cause),
            talker = self.child() => match talker {
                Ok(talker) => talker,
                Err(error) => return Ended::not_started(&error, context).await,
            },
        };
        let line = reply::request(&message, context);
        let answer = tokio::select! {
            biased;
            answer = talker.ask(&line) => answer,
            cause = context.until_cancelled() => {
                // It is in the middle of something, and its reply would be taken for that to the next message.
                let _ = talker.child.stop().await;
                return Ended::cancelled(cause);
            }
        };
        let ended =
            answer.and_then(|line| reply::outcome(&line, message.id(), self.defer).map_err(Fault::Bad));
        match ended {
            Ok(ended) => {
                talker.has_replied = true;
                let mut idle = self.idle();
                (idle.deaths, idle.start_at) = (0, None);
                idle.children.push(talker);
                ended
            }
            Err(fault) => {
                if !talker.has_replied {
                    self.count_death();
                }
                talker.fail(fault).await
            }
        }
    }

    /// Takes the idle child that was used last, or starts one.
    async fn child(&self) -> io::Result<Talker> {
        loop {
            // One that has ended meanwhile is left aside: its end did no harm to a message.
            let Some(mut talker) = self.idle().children.pop() else { break };
            if talker.child.is_running() {
                return Ok(talker);
            }
        }
        let start_at = self.idle().start_at;
        if let Some(instant) = start_at {
            sleep_until(instant).await;
        }
        self.start()
    }

    fn start(&self) -> io::Result<Talker> {
        let mut command = self.program.command();
        command.stdout(Stdio::piped());
        command.stderr(if self.is_shown { Stdio::inherit() } else { Stdio::null() });
        let mut child = self.program.start(&mut command)?;
        let (stdin, stdout) = child
            .stdin()
            .zip(child.stdout())
            .ok_or_else(|| io::Error::other("the new process has no pipes"))?;
        Ok(Talker { child, has_replied: false, stdin, stdout: BufReader::new(stdout) })
    }

    fn count_death(&self) {
        let mut idle = self.idle();
        let pause = FIRST_PAUSE.saturating_mul(1 << idle.deaths.min(10)).min(LONGEST_PAUSE);
        idle.deaths = idle.deaths.saturating_add(1);
        idle.start_at = Some(Instant::now() + pause);
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends all children, which have nothing to do any more.
pub(super) async fn close(pipes: &[Pipe]) {
    let mut ends = JoinSet::new();
    let idle = pipes.iter().flat_map(|pipe| std::mem::take(&mut pipe.idle().children));
    for Talker { mut child, stdin, stdout, .. } in idle {
        // The end of its input is the signal to end; who does not heed it gets the others.
        drop(stdin);
        ends.spawn(async move {
            if timeout(END, child.wait()).await.is_err() {
                let _ = child.stop().await;
            }
            drop(stdout);
        });
    }
    while ends.join_next().await.is_some() {}
}

impl Talker {
    /// Writes a line and reads one. The reply may begin before all is written, so both go on at once.
    async fn ask(&mut self, line: &[u8]) -> Result<Vec<u8>, Fault> {
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
        let ((), reply) = tokio::try_join!(write, read)?;
        // A second line would be read as the reply to the next message.
        if !stdout.buffer().is_empty() {
            return Err(Fault::Bad("the reply has more than one line".to_owned()));
        }
        Ok(reply)
    }

    /// Ends a child that gave no reply, and says so.
    async fn fail(mut self, fault: Fault) -> Ended {
        match fault {
            Fault::Bad(text) => {
                let _ = self.child.stop().await;
                Ended::failed("bad reply", Failure::new(text).class("bad reply").code("bad-reply"))
            }
            Fault::Gone => {
                drop(self.stdin);
                let status = match timeout(END, self.child.wait()).await {
                    Ok(status) => status,
                    Err(_) => self.child.stop().await,
                };
                let (class, code) =
                    status.map_or_else(|_| ("lost".to_owned(), "lost".to_owned()), ending::name);
                let text = format!("the child ended before it had answered with a line: {class}");
                Ended::failed(class.clone(), Failure::new(text).class(class).code(code))
            }
        }
    }
}

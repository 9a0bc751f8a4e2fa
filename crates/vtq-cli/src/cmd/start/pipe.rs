//! `--pipe`: long-lived children that take a message a line and answer with a line.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use vtq::{Context, Message};

use super::child::Program;
use super::ending::Ended;
use super::log::{Level, Line, Log};
use super::reply;
use super::talker::{Fault, Mood, Talker};

/// The wait before a new child when the last one died without a single good reply; it doubles, up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Hands messages to children, one at a time each: there are never more children than slots.
#[derive(Debug, Clone)]
pub(super) struct Pipe {
    program: Program,
    defer: Duration,
    is_shown: bool,
    log: Log,
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

impl Pipe {
    pub(super) fn new(program: Program, defer: Duration, is_shown: bool, log: Log) -> Self {
        Self { program, defer, is_shown, log, idle: Arc::default() }
    }

    /// The same command, with children of its own.
    pub(super) fn sibling(&self) -> Self {
        Self { idle: Arc::default(), ..self.clone() }
    }

    pub(super) async fn run(&self, message: Message, context: &Context) -> Ended {
        let line = reply::request(&message, context);
        loop {
            let mut talker = tokio::select! {
                biased;
                cause = context.until_cancelled() => return Ended::cancelled(cause),
                talker = self.child() => match talker {
                    Ok(talker) => talker,
                    Err(error) => return Ended::not_started(&error, context).await,
                },
            };
            let answer = tokio::select! {
                biased;
                answer = talker.ask(&line) => answer,
                cause = context.until_cancelled() => {
                    talker.stop().await;
                    return Ended::cancelled(cause);
                }
            };
            let ended =
                answer.and_then(|reply| reply::outcome(&reply, message.id(), self.defer).map_err(Fault::Bad));
            match ended {
                Ok(ended) => {
                    self.keep(talker);
                    return ended;
                }
                Err(fault) => {
                    if !talker.has_replied {
                        self.count_death();
                    }
                    if let Some(ended) = talker.fail(fault).await {
                        return ended;
                    }
                }
            }
        }
    }

    /// Takes the idle child that was used last, or starts one.
    async fn child(&self) -> io::Result<Talker> {
        loop {
            let Some(mut talker) = self.idle().children.pop() else { break };
            match talker.mood().await {
                Mood::Waiting => return Ok(talker),
                // Its end did no harm to a message.
                Mood::Gone => {}
                Mood::Talking => self.log.tell(Line::new(
                    Level::Warn,
                    "unasked",
                    "a child of --pipe has printed more than one line for a message, and is replaced",
                )),
            }
        }
        let start_at = self.idle().start_at;
        if let Some(instant) = start_at {
            sleep_until(instant).await;
        }
        let mut command = self.program.command();
        command.stdout(Stdio::piped());
        command.stderr(if self.is_shown { Stdio::inherit() } else { Stdio::null() });
        self.program.start(&mut command).and_then(Talker::new)
    }

    fn keep(&self, mut talker: Talker) {
        talker.has_replied = true;
        let mut idle = self.idle();
        (idle.deaths, idle.start_at) = (0, None);
        idle.children.push(talker);
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
    let idle = pipes.iter().flat_map(|pipe| std::mem::take(&mut pipe.idle().children));
    let mut ends: JoinSet<_> = idle.map(Talker::dismiss).collect();
    while ends.join_next().await.is_some() {}
}

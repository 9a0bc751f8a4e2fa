//! The handlers of a worker, a capsule each.

use vtq::{Capsule, Context, Handler, Message, Outcome};

use super::child::{Groups, Program};
use super::ending::Ended;
use super::exec::Exec;
use super::log::{Level, Line, Log};
use super::pipe::{self, Pipe};
use super::url::Post;
use super::{Output, StartArgs};

/// The capsules with their handlers, and what is to be ended after them.
#[derive(Debug)]
pub(super) struct Crew {
    /// Names the kind of the handlers.
    pub(super) name: String,
    /// Names the queues and their slots.
    pub(super) served: String,
    pub(super) capsules: Vec<Capsule>,
    pipes: Vec<Pipe>,
}

impl Crew {
    pub(super) fn new(args: &StartArgs, log: &Log, groups: &Groups) -> anyhow::Result<Self> {
        let specs: Vec<_> = args.queues.iter().flat_map(|queues| &queues.0).collect();
        let served: Vec<String> = specs.iter().map(ToString::to_string).collect();
        let (name, runner) = runner(args, log, groups)?;
        let mut crew = Self { name, served: served.join("; "), capsules: vec![], pipes: vec![] };
        for spec in specs {
            let runner = match &runner {
                // Children are for the slots of one capsule.
                Runner::Pipe(pipe) => Runner::Pipe(pipe.sibling()),
                other => other.clone(),
            };
            if let Runner::Pipe(pipe) = &runner {
                crew.pipes.push(pipe.clone());
            }
            let handler = Noted { runner, log: log.clone() };
            crew.capsules.push(Capsule::new(&spec.queues, handler).concurrency(spec.slots));
        }
        Ok(crew)
    }

    /// Ends the commands that wait for messages.
    pub(super) async fn close(&self) {
        pipe::close(&self.pipes).await;
    }
}

fn runner(args: &StartArgs, log: &Log, groups: &Groups) -> anyhow::Result<(String, Runner)> {
    let is_shown = args.output == Output::Show;
    let program = |line: &String| Program::new(line.clone(), groups.clone(), args.grace);
    Ok(match (&args.exec, &args.pipe, &args.url) {
        (Some(line), ..) => {
            let exec = Exec { program: program(line), defer: args.defer, is_shown };
            ("--exec".to_owned(), Runner::Exec(exec))
        }
        (_, Some(line), _) => {
            ("--pipe".to_owned(), Runner::Pipe(Pipe::new(program(line), args.defer, is_shown, log.clone())))
        }
        (_, _, Some(address)) => {
            let post = Post::new(address)?;
            (format!("--url {}", post.origin()), Runner::Post(post))
        }
        (None, None, None) => anyhow::bail!("one of --exec, --pipe and --url is needed"),
    })
}

/// One of the three handlers.
#[derive(Debug, Clone)]
enum Runner {
    Exec(Exec),
    Pipe(Pipe),
    Post(Post),
}

/// A handler that leaves a note for the log.
#[derive(Debug)]
struct Noted {
    runner: Runner,
    log: Log,
}

impl Handler for Noted {
    async fn handle(&self, message: Message, context: Context) -> Outcome {
        let (queue, lease) = (context.queue().clone(), message.lease);
        let ended = match &self.runner {
            Runner::Exec(exec) => exec.run(message, &context).await,
            Runner::Pipe(pipe) => pipe.run(message, &context).await,
            Runner::Post(post) => post.run(message, &context).await,
        };
        let Ended { outcome, why, is_alarm } = ended;
        if let Some(why) = why {
            if is_alarm {
                self.log.tell(Line::new(Level::Warn, "not_started", format!("{queue}/{}: {why}", lease.id)));
            }
            self.log.note(queue, lease, why);
        }
        outcome
    }
}

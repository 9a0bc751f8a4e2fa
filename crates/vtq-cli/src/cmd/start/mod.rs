//! `vtq start`: a worker whose handler is a command or an address.

mod child;
mod crew;
mod ending;
mod exec;
mod log;
mod narrate;
mod pipe;
mod queues;
mod reply;
mod signals;
mod tail;
mod talker;
mod url;

use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use tokio::sync::oneshot;
use vtq::{ConnectOptions, Stopped, Vtq, WakeUp, Worker, WorkerBuilder};

use self::child::Groups;
use self::crew::Crew;
use self::log::{Format, Level, Line, Log};
use self::queues::Queues;
use self::signals::Signals;
use self::url::Address;
use crate::args::Global;
use crate::args::length::length;
use crate::exit::Exit;

/// The exit code of a worker that had to give back messages whose handlers were running.
const INTERRUPTED_RUNS: u8 = 3;

/// A command has this much longer than its grace before the engine gives it up, so that its end can still be seen.
const REAPING: Duration = Duration::from_secs(1);

/// Run a worker: a command or a POST for each message.
///
/// A message may be delivered more than once: a handler must bear that.
///
/// SIGTERM, SIGINT or SIGHUP ends it: it takes no more messages, gives back those that have not started, and lets
/// handlers finish for the drain timeout. A second signal ends it at once. Exit codes: 0 after a clean end, 3 when
/// handlers had to be interrupted (their messages were given back), 130 after a second signal, 2 when it cannot work.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("handler").required(true)))]
pub(crate) struct StartArgs {
    /// The queues, and how many of their messages may run at once: "critical: 5; default, mailers: 10"
    ///
    /// Capsules, with a `;` between them. In a capsule: queues in order of priority, with a `,` between them (a queue
    /// is read only while those before it are empty), then `:` and the number of messages that run at once; 10 if
    /// not given. May be given more than once.
    #[arg(long, required = true, value_name = "QUEUES")]
    queues: Vec<Queues>,

    /// Run this command for each message; the message is its standard input
    ///
    /// Through `sh -c`, so pipes, `&&` and variables work. In the environment: VTQ_MSG_ID, VTQ_READ_CT, VTQ_ATTEMPT,
    /// VTQ_QUEUE and VTQ_HEADERS (JSON; {} for none). Exit 0: done. 75: put off, see --defer. 65: undecodable, 100:
    /// failed for good; both go to the dead letters. Anything else, or a signal: failed, to be retried. The last
    /// 4 KiB of standard error are kept as the error.
    ///
    /// Each command is a process group of its own. When it is to end early (timeout, lost lease, shutdown), the
    /// group gets SIGTERM and, after --grace, SIGKILL. When the command ends, what it left running in its group is
    /// killed; `setsid` takes a process out of it.
    #[arg(long, group = "handler", value_name = "COMMAND", value_parser = command)]
    exec: Option<String>,

    /// Keep this command running and hand it messages as lines of JSON
    ///
    /// Through `sh -c`; one process for each message at a time, started when it is first needed. For each message one
    /// line goes to its standard input: {"msg_id", "read_ct", "attempt", "queue", "headers", "message"}. It answers with
    /// one line: {"outcome": "done"}, or "retry" with "retry_after" (seconds) and "error" (a text, or an object with
    /// "class", "code", "message", "detail"), "defer" with "delay" (seconds) and "reason", "permanent" or "undecodable"
    /// with "error". An answer that has "msg_id" is checked against the message; without it, a stray line that comes
    /// late passes for the answer to the next one. It must flush each line, and end when its input ends. One that
    /// crashes, or answers anything else, fails its message, to be retried, and is replaced.
    #[arg(long, group = "handler", value_name = "COMMAND", value_parser = command)]
    pipe: Option<String>,

    /// POST each message to this address
    ///
    /// With the headers Vtq-Msg-Id, Vtq-Read-Ct, Vtq-Attempt, Vtq-Queue and Vtq-Headers (JSON in ASCII; {} for
    /// none). 2xx: done. 408, 425, 429: failed, to be retried; any other 4xx: failed for good, to the dead letters.
    /// Everything else: to be retried. Retry-After is heeded. Redirects are not followed. The first 4 KiB of the
    /// response are kept as the error. An address with a secret in it is better given in VTQ_URL, for a command line
    /// shows in `ps`.
    #[arg(long, group = "handler", env = "VTQ_URL", hide_env_values = true, value_name = "URL")]
    url: Option<Address>,

    /// How long a message is put off when its handler says so and not for how long
    #[arg(long, value_name = "LENGTH", value_parser = length, default_value = "30s")]
    defer: Duration,

    /// Whether what commands print is shown
    ///
    /// `show`: --exec passes on standard output and standard error, --pipe standard error. Prefer `hide` when
    /// commands print what should be in no log.
    #[arg(long, value_enum, default_value_t = Output::Show, value_name = "WHAT")]
    output: Output,

    /// End when no message is ready and none is running. What a limit of the queue holds back stays
    #[arg(long)]
    once: bool,

    /// How long a message is hidden from others at a time; renewed while its handler runs. Default: the queue's
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    vt: Option<Duration>,

    /// How often that is renewed. Default, and at most: a third of it
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    heartbeat: Option<Duration>,

    /// How long handlers may go on after a signal to stop
    #[arg(long, value_name = "LENGTH", value_parser = length, default_value = "30s")]
    drain_timeout: Duration,

    /// How long a command that is told to stop may take before it is killed
    #[arg(long, value_name = "LENGTH", value_parser = length, default_value = "10s")]
    grace: Duration,

    /// Where to LISTEN, if not at the database's address: a transaction pooler cannot carry it
    #[arg(long, env = "VTQ_LISTEN_URL", hide_env_values = true, value_name = "URL")]
    listen_url: Option<Address>,

    /// Do not LISTEN: poll only
    #[arg(long, conflicts_with = "listen_url")]
    no_listen: bool,

    /// The slowest poll of a worker that waits: the most that a missed notification can cost. Default: 30s, and 1s while
    /// no notifications arrive
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    poll: Option<Duration>,

    /// How the log on standard error is written. Default: text, or json with --json
    ///
    /// It has ids and the kind of a failure, never a message, a header or the text of an error. -v logs every run,
    /// -q only what is wrong.
    #[arg(long, value_enum, value_name = "FORMAT")]
    log: Option<Format>,
}

/// What becomes of what commands print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Pass it on.
    Show,
    /// Throw it away.
    Hide,
}

pub(crate) async fn run(global: &Global, args: StartArgs) -> anyhow::Result<Exit> {
    // Before anything else: a supervisor may stop us as soon as it has started us.
    let signals = Signals::catch().context("cannot catch signals")?;
    let log = start_log(global, &args)?;
    // Not `connect`: the worker waits for a database that is away.
    let vtq = global.options()?.lazy()?;
    let groups = Groups::default();
    let crew = Crew::new(&args, &log, &groups)?;

    let worker = builder(&vtq, &args, &log, &crew)?.build()?;
    let (stop, stopped) = oneshot::channel();
    let shutdown = async move {
        // Its sender is kept until the worker has ended.
        let _ = stopped.await;
    };
    let life = async {
        let ended = worker.run(shutdown).await;
        crew.close().await;
        ended
    };
    let ended = tokio::select! {
        ended = life => ended,
        () = obey(signals, stop, &log) => {
            groups.kill_all();
            log.tell(Line::new(Level::Warn, "left", "left at once; messages in hand come back by their timeout"));
            log.flush();
            return Ok(Exit::Interrupted);
        }
    };
    // Nothing is left of them by now; if something were, it must not outlive us.
    groups.kill_all();
    let stopped = ended.inspect_err(|_| log.flush())?;
    log.tell(narrate::summary(&stopped));
    log.flush();
    Ok(exit(&stopped))
}

/// An empty command would succeed, and so lose each message: most likely a variable is not set.
fn command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

fn exit(stopped: &Stopped) -> Exit {
    if stopped.interrupted > 0 { Exit::Code(INTERRUPTED_RUNS) } else { Exit::Done }
}

fn start_log(global: &Global, args: &StartArgs) -> anyhow::Result<Log> {
    let format = args.log.unwrap_or(if global.json { Format::Json } else { Format::Text });
    let least = match (global.quiet, global.verbose) {
        (true, _) => Level::Warn,
        (false, 0) => Level::Info,
        (false, _) => Level::Debug,
    };
    Log::start(format, least).context("cannot start the thread that writes the log")
}

/// Returns at the second signal; the first asks the worker to stop.
async fn obey(mut signals: Signals, stop: oneshot::Sender<()>, log: &Log) {
    let name = signals.next().await;
    let text = format!("{name}: stopping; a second signal leaves at once");
    log.tell(Line::new(Level::Info, "signal", text).with("signal", name));
    let _ = stop.send(());
    signals.next().await;
}

fn builder(vtq: &Vtq, args: &StartArgs, log: &Log, crew: &Crew) -> anyhow::Result<WorkerBuilder> {
    let served = format!("{} by {}", crew.served, crew.name);
    let events = log.clone();
    let mut builder = Worker::builder(vtq)
        .drain_timeout(args.drain_timeout)
        .grace(args.grace.saturating_add(REAPING))
        .wake_up(wake_up(args)?)
        .on_event(move |event| narrate::tell(&events, event, &served));
    if let Some(length) = args.vt {
        builder = builder.visibility_timeout(length);
    }
    if let Some(interval) = args.poll {
        builder = builder.slowest_poll(interval);
    }
    if let Some(interval) = args.heartbeat {
        builder = builder.heartbeat(interval);
    }
    if args.once {
        builder = builder.once();
    }
    Ok(crew.capsules.iter().cloned().fold(builder, WorkerBuilder::capsule))
}

fn wake_up(args: &StartArgs) -> anyhow::Result<WakeUp> {
    Ok(match &args.listen_url {
        _ if args.no_listen => WakeUp::Poll,
        Some(url) => {
            // What the address leaves open is the environment's, as for the database itself.
            let options = ConnectOptions::from_url(url.as_str()).and_then(ConnectOptions::with_env);
            WakeUp::ListenAt(options.and_then(ConnectOptions::lazy).context("--listen-url")?)
        }
        None => WakeUp::Listen,
    })
}

//! `vtq demo`: the first look at vtq. Real messages, a handler that has its troubles, a worker that dies.
//!
//! The demo itself sends and watches. The messages are handled in worker processes of their own, started from the
//! same program, so that a crash is a crash.

mod crew;
mod facts;
mod handler;
mod place;
mod progress;
mod sample;
mod signals;
mod story;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use vtq::{Outgoing, SendOptions};

use self::crew::Crew;
use self::facts::Facts;
use self::place::Place;
use self::progress::Progress;
use self::signals::Signals;
use crate::args::Global;
use crate::exit::Exit;
use crate::output::Output;

const QUEUE: &str = "demo";

/// One statement sends this many.
const BATCH: usize = 500;

/// The handler takes this long for a message on average, or less if there are so many that it would take minutes.
const PACE: Duration = Duration::from_millis(40);
const ALL_HANDLED_IN: Duration = Duration::from_secs(4);

/// Show vtq at work: real messages, failures, a worker that dies
///
/// Starts a throwaway PostgreSQL from the binaries on this machine, sends real webhooks through a queue, and tells
/// in tables what became of them. Everything is removed at the end. With a database given, it uses that one, and
/// leaves a queue `demo` in it.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Send the messages of this file, one JSON value a line, instead of the built-in sample
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Leave the throwaway PostgreSQL up until Ctrl-C, to look around in it
    #[arg(long)]
    keep: bool,
    /// Drop the queue `demo` if it is there already
    #[arg(long, short)]
    yes: bool,
    /// Be the worker process, and take this many milliseconds for a message
    #[arg(long, hide = true, value_name = "MS")]
    worker_child: Option<u64>,
}

pub(crate) async fn run(global: &Global, args: DemoArgs) -> anyhow::Result<Exit> {
    if let Some(pace) = args.worker_child {
        return handler::work(global, Duration::from_millis(pace)).await;
    }
    // From here on Ctrl-C ends nothing by itself: whatever was begun is cleaned up.
    let mut signals = Signals::listen()?;
    let progress = Progress::new(global);
    let messages = sample::load(args.file.as_deref())?;
    let Some(mut place) = Place::open(global, &progress, &mut signals).await? else {
        progress.clear();
        return Ok(Exit::Interrupted);
    };
    let mut crew = Crew::new(&place, pace(messages.len()));
    let played = tokio::select! {
        played = play(&mut place, &mut crew, &messages, args.yes, &progress) => Some(played),
        () = signals.next() => None,
    };
    progress.clear();
    crew.stop().await;
    let Some(played) = played else {
        place.abandon().await?;
        progress.say("Interrupted; nothing of the demo is left.");
        return Ok(Exit::Interrupted);
    };
    played?;
    let facts = Facts::gather(&place).await?;
    tell(&facts, messages.len(), Output::of(global))?;
    let is_kept = args.keep && place.is_throwaway();
    let next = what_next(&place, &facts, is_kept);
    if is_kept {
        progress.insist(&next);
        signals.next().await;
    }
    drop(place);
    if !is_kept {
        progress.say(&next);
    }
    Ok(Exit::Done)
}

async fn play(
    place: &mut Place,
    crew: &mut Crew,
    messages: &[Outgoing],
    may_drop: bool,
    progress: &Progress,
) -> anyhow::Result<()> {
    place.prepare(may_drop, progress).await?;
    progress.begin("sending");
    for batch in messages.chunks(BATCH) {
        place.queue.send_batch(batch, &SendOptions::default()).await?;
    }
    progress.done(&format!("{} messages sent", messages.len()));
    watch::until_settled(place, crew, progress).await
}

fn pace(messages: usize) -> Duration {
    let messages = u32::try_from(messages).unwrap_or(u32::MAX).max(1);
    PACE.min(ALL_HANDLED_IN * handler::SLOTS / messages)
}

/// Tells the story, and fails if it does not add up.
fn tell(facts: &Facts, sent: usize, output: Output) -> anyhow::Result<()> {
    if output.is_json() {
        output.json(facts)?;
        return facts.check(sent);
    }
    story::tell(facts, output)?;
    facts.check(sent)?;
    story::conclude(facts, output)
}

fn what_next(place: &Place, facts: &Facts, is_kept: bool) -> String {
    let dead = facts.dead_letter.as_ref().map_or(1, |letter| letter.msg_id);
    let commands = format!("  vtq dlq list {QUEUE}\n  vtq dlq retry {QUEUE}/{dead}");
    match (place.throwaway_url(), place.psql_line()) {
        (Some(url), Some(psql)) if is_kept => format!(
            "\nThe database stays up until Ctrl-C; then it is removed. In another terminal:\n  {psql}\n  \
             export DATABASE_URL='{url}'\n{commands}"
        ),
        (Some(_), _) => format!(
            "\nThe database is gone. `vtq demo --keep` leaves it up, for psql and to try:\n{commands}"
        ),
        (None, _) => format!(
            "\nQueue {QUEUE} stays in {}. To try next:\n{commands}\n  vtq queue drop {QUEUE}",
            place.vtq.redacted()
        ),
    }
}

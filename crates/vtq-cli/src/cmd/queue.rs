//! `vtq queue`: creating, changing, dropping, listing queues.

mod options;

use anyhow::bail;
use serde_json::{Map, Value, json};
use vtq::{Created, ErrorKind, Exact, Queue, QueueOptions};

use crate::args::Global;
use crate::args::queue::{DropArgs, QueueCommand, SetArgs, ShowArgs};
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, Tone, ask, instant};

pub(super) async fn run(global: &Global, output: Output, command: QueueCommand) -> anyhow::Result<Exit> {
    match command {
        QueueCommand::Create(args) => create(global, output, args).await,
        QueueCommand::Set(args) => set(global, output, args).await,
        QueueCommand::Drop(args) => drop_queue(global, output, args).await,
        QueueCommand::List => list(global, output).await,
        QueueCommand::Show(args) => show(global, output, args).await,
    }
}

async fn create(global: &Global, output: Output, args: SetArgs) -> anyhow::Result<Exit> {
    let options = QueueOptions::from_json(options::given(&args.options)?);
    let queue = global.connect().await?.queue(&args.name)?;
    let is_new = queue.create(&options).await? == Created::New;
    let text = match is_new {
        true => format!("queue `{}` created", args.name),
        false => format!("queue `{}` was there already, with the same options", args.name),
    };
    let document = json!({"queue": args.name.as_str(), "created": is_new, "options": queue.options().await?});
    output.done(&text, &document)?;
    Ok(Exit::Done)
}

async fn set(global: &Global, output: Output, args: SetArgs) -> anyhow::Result<Exit> {
    let mut given = options::given(&args.options)?;
    if given.is_empty() {
        bail!("no option is given: say what to change, such as --max-attempts 8");
    }
    let queue = global.connect().await?.queue(&args.name)?;
    if args.options.backoff.backoff.is_none() {
        options::complete_backoff(&mut given, &queue.options().await?);
    }
    let effective = queue.set(&QueueOptions::from_json(given)).await?;
    output.done(
        &format!("queue `{}` changed", args.name),
        &json!({"queue": args.name.as_str(), "options": effective}),
    )?;
    Ok(Exit::Done)
}

async fn drop_queue(global: &Global, output: Output, args: DropArgs) -> anyhow::Result<Exit> {
    let name = &args.name;
    let queue = global.connect_patiently().await?.queue(name)?;
    if !args.yes
        && let Some(held) = held(&queue).await?
    {
        let question = format!("queue `{name}` holds {held}");
        match ask(&format!("{question}: drop it with all of that?"))? {
            Some(true) => {}
            Some(false) => {
                output.remark(&format!("queue `{name}` was not dropped"));
                return Ok(Exit::Nothing);
            }
            None => bail!("{question}: say --yes to drop it with all of that"),
        }
    }
    let is_dropped = queue.drop_queue().await?;
    output.done_or_remark(
        is_dropped,
        &format!("queue `{name}` dropped"),
        &format!("queue `{name}` does not exist"),
        &json!({"queue": name.as_str(), "dropped": is_dropped}),
    )?;
    Ok(if is_dropped { Exit::Done } else { Exit::Nothing })
}

/// What would be lost; `None`: no message, or no queue.
async fn held(queue: &Queue) -> anyhow::Result<Option<String>> {
    let metrics = match queue.metrics(Exact::No).await {
        Ok(metrics) => metrics,
        Err(error) if error.kind() == ErrorKind::QueueNotFound => return Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::TableMissing | ErrorKind::Database) => {
            return Ok(Some("what cannot be counted, as a table of it is damaged".into()));
        }
        Err(error) => return Err(error.into()),
    };
    let live = [
        metrics.ready,
        metrics.in_flight,
        metrics.delayed,
        metrics.retrying,
        metrics.waiting,
        metrics.exhausted,
        metrics.expired,
    ];
    let live: u64 = live.iter().flatten().sum();
    let dead = metrics.dead.unwrap_or(0);
    let about = if metrics.is_estimated { "about " } else { "" };
    Ok((live + dead > 0).then(|| format!("{about}{live} live messages and {dead} dead letters")))
}

async fn list(global: &Global, output: Output) -> anyhow::Result<Exit> {
    let vtq = global.connect().await?;
    let mut documents = Vec::new();
    let mut table = Table::new(["queue", "max attempts", "vt", "timeout", "on ack", "priorities", "state"]);
    for metrics in vtq.metrics_all(Exact::No).await? {
        let options = vtq.queue(&metrics.queue)?.options().await?;
        let state = match (&metrics.error, metrics.is_paused) {
            (Some(_), _) => Cell::text("broken").tone(Tone::Bad),
            (None, true) => Cell::text("paused").tone(Tone::Notable),
            (None, false) => Cell::text("running"),
        };
        table.row([
            Cell::text(&metrics.queue),
            Cell::number(options::shown(&options, "max_attempts")),
            Cell::text(options::shown(&options, "visibility_timeout")),
            Cell::text(options::shown(&options, "timeout")),
            Cell::text(options::shown(&options, "on_ack")),
            Cell::text(options::shown(&options, "priorities")),
            state,
        ]);
        documents.push(document(&metrics.queue, &options, metrics.is_paused));
    }
    let is_empty = documents.is_empty();
    if output.is_json() {
        output.json(&documents)?;
    } else if is_empty {
        output.remark("there are no queues: create one with: vtq queue create NAME");
    } else {
        output.table(table)?;
    }
    Ok(if is_empty { Exit::Nothing } else { Exit::Done })
}

async fn show(global: &Global, output: Output, args: ShowArgs) -> anyhow::Result<Exit> {
    let ShowArgs { name } = args;
    let vtq = global.connect().await?;
    let options = vtq.queue(&name)?.options().await?;
    let metrics =
        vtq.metrics_all(Exact::No).await?.into_iter().find(|metrics| metrics.queue == name.as_str());
    let is_paused = metrics.as_ref().is_some_and(|metrics| metrics.is_paused);
    if output.is_json() {
        output.json(&document(name.as_str(), &options, is_paused))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new([]);
    table.row([Cell::text("queue"), Cell::text(&name)]);
    for option in options.keys() {
        table.row([Cell::text(option), Cell::text(options::shown(&options, option))]);
    }
    if let Some(metrics) = metrics.filter(|metrics| metrics.is_paused) {
        let until = metrics.paused_until.map(|at| format!("until {}", instant(at)));
        let reason = metrics.pause_reason.unwrap_or_default();
        table.row([Cell::text("paused"), Cell::text(format!("{} {reason}", until.unwrap_or("yes".into())))]);
    }
    output.table(table)?;
    Ok(Exit::Done)
}

fn document(name: &str, options: &Map<String, Value>, is_paused: bool) -> Value {
    json!({"queue": name, "paused": is_paused, "options": options})
}

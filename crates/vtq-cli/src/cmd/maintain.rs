//! `vtq maintain`: retention, archive partitions and compaction, by hand.

use serde_json::{Map, Value};

use crate::args::{Global, MaintainArgs};
use crate::exit::Exit;
use crate::output::Output;

pub(super) async fn run(global: &Global, output: Output, args: &MaintainArgs) -> anyhow::Result<Exit> {
    let vtq = global.connect_patiently().await?;
    let mut names: Vec<String> = args.queues.iter().map(|name| name.as_str().to_owned()).collect();
    if names.is_empty() {
        names = vtq.metrics_all(vtq::Exact::No).await?.into_iter().map(|metrics| metrics.queue).collect();
    }
    let mut documents = Vec::new();
    for name in &names {
        let mut done = vtq.queue(name)?.maintain().await?;
        output.line(&sentence(name, &done))?;
        done.insert("queue".into(), name.as_str().into());
        documents.push(done);
    }
    if output.is_json() {
        output.json(&documents)?;
    } else if names.is_empty() {
        output.remark("there are no queues: create one with: vtq queue create NAME");
    }
    Ok(if names.is_empty() { Exit::Nothing } else { Exit::Done })
}

/// What was done to a queue, for people.
fn sentence(name: &str, done: &Map<String, Value>) -> String {
    if done.get("ran") != Some(&Value::Bool(true)) {
        return format!("queue `{name}`: somebody else is maintaining it");
    }
    let number = |key: &str| done.get(key).and_then(Value::as_u64).unwrap_or(0);
    let compaction = match done.get("compaction").and_then(Value::as_str) {
        Some("done") => "compacted".to_owned(),
        Some(why) => format!("not compacted: {why}"),
        None => "not compacted".to_owned(),
    };
    format!(
        "queue `{name}`: {} days of the archive, {} attempts and {} dead letters removed; {compaction}",
        number("partitions_dropped"),
        number("attempts_removed"),
        number("dead_removed"),
    )
}

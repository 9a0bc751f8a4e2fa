//! `vtq pause` and `vtq resume`.

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use vtq::Vtq;

use crate::args::Global;
use crate::args::queue::{PauseArgs, ResumeArgs};
use crate::exit::Exit;
use crate::output::{Output, brief, instant};

pub(super) async fn pause(global: &Global, output: Output, args: PauseArgs) -> anyhow::Result<Exit> {
    let vtq = global.connect().await?;
    let until = match args.length {
        Some(length) => Some(from_now(&vtq, "--for", length).await?),
        None => args.until,
    };
    let was_running = vtq.queue(&args.name)?.pause(args.reason.as_deref(), until).await?;
    let document = json!({
        "queue": args.name.as_str(),
        "paused": true,
        "was_paused": !was_running,
        "paused_until": until,
        "pause_reason": args.reason,
    });
    let end = until.map(|at| format!(" until {}", instant(at))).unwrap_or_default();
    let before = if was_running { "" } else { "; it was paused before" };
    output.done(&format!("queue `{}` is paused{end}{before}", args.name), &document)?;
    Ok(Exit::Done)
}

pub(super) async fn resume(global: &Global, output: Output, args: ResumeArgs) -> anyhow::Result<Exit> {
    let was_paused = global.connect().await?.queue(&args.name)?.resume().await?;
    let document = json!({"queue": args.name.as_str(), "paused": false, "was_paused": was_paused});
    output.done_or_remark(
        was_paused,
        &format!("queue `{}` is running again", args.name),
        &format!("queue `{}` was not paused", args.name),
        &document,
    )?;
    Ok(if was_paused { Exit::Done } else { Exit::Nothing })
}

/// The instant that lies this far ahead on the database's clock.
pub(super) async fn from_now(
    vtq: &Vtq,
    option: &str,
    length: std::time::Duration,
) -> anyhow::Result<DateTime<Utc>> {
    let refusal = || format!("{option} {} is not allowed: it ends past the year 9999", brief(length));
    let length = TimeDelta::from_std(length).ok().with_context(refusal)?;
    let at = vtq.now().await?.checked_add_signed(length).with_context(refusal)?;
    anyhow::ensure!(at.format("%Y").to_string().len() == 4, refusal());
    Ok(at)
}

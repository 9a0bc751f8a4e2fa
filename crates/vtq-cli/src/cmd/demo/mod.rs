//! `vtq demo`: the first look at vtq.

use crate::args::Global;
use crate::exit::Exit;

/// Show vtq at work on a throwaway database.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {}

pub(crate) async fn run(_global: &Global, _args: DemoArgs) -> anyhow::Result<Exit> {
    Ok(Exit::Done)
}

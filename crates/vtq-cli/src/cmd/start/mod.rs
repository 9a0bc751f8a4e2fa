//! `vtq start`: a worker.

use crate::args::Global;
use crate::exit::Exit;

/// Run a worker.
#[derive(Debug, clap::Args)]
pub(crate) struct StartArgs {}

pub(crate) async fn run(_global: &Global, _args: StartArgs) -> anyhow::Result<Exit> {
    Ok(Exit::Done)
}

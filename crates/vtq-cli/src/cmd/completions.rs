//! `vtq completions`.

use crate::args::{self, CompletionsArgs};
use crate::exit::Exit;
use crate::output::print;

pub(super) fn run(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "vtq", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

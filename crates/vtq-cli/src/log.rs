//! Logging: to standard error, and never a message.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;

use crate::args::Global;
use crate::output::{complain, is_coloured};

/// Starts to log.
///
/// What other crates log through `log` is not collected at all, and of what they trace only the important: a driver
/// or a client that traces its work shows statements, parameters and headers, and those hold secrets.
pub(crate) fn start(global: &Global) {
    let default = match (global.quiet, global.verbose) {
        (true, 0) => "error",
        (_, 0) => "warn",
        (_, 1) => "warn,vtq=info",
        (_, 2) => "info,vtq=debug",
        _ => "info,vtq=trace",
    };
    let wanted = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.is_empty());
    let filter = wanted.map_or(Ok(EnvFilter::new(default)), EnvFilter::try_new).unwrap_or_else(|error| {
        complain(&format!("RUST_LOG is ignored: {error}"));
        EnvFilter::new(default)
    });
    let discreet =
        filter_fn(|event| event.target().starts_with("vtq") || *event.level() <= LevelFilter::INFO);
    let printer = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(is_coloured(global.color, io::stderr().is_terminal()));
    let subscriber = tracing_subscriber::registry().with(discreet).with(filter).with(printer);
    // Only fails if there is a subscriber already, which then logs.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

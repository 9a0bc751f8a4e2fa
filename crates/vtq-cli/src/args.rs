//! The command line: what can be given, and the help that says so.

use clap::{Parser, Subcommand, ValueEnum};
use vtq::{ConnectOptions, Vtq};

use crate::cmd;

/// A message queue inside PostgreSQL.
#[derive(Debug, Parser)]
#[command(name = "vtq", version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// The database
    #[arg(long, global = true, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<Secret>,
    /// Answer in JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing but what was asked for
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Log more to standard error
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

/// A text that must not be shown.
#[derive(Clone)]
pub(crate) struct Secret(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Start(cmd::start::StartArgs),
    Demo(cmd::demo::DemoArgs),
}

impl Global {
    /// Returns how to reach the database: the URL, and what it leaves open from libpq's environment.
    pub(crate) fn options(&self) -> vtq::Result<ConnectOptions> {
        let options = match &self.database_url {
            Some(url) => ConnectOptions::from_url(&url.0)?,
            None => ConnectOptions::default(),
        };
        options.with_env()
    }

    /// Tells whether a database was named, by option or by the variable.
    pub(crate) fn has_database_url(&self) -> bool {
        self.database_url.is_some()
    }

    /// Connects, and makes sure that the database answers.
    pub(crate) async fn connect(&self) -> vtq::Result<Vtq> {
        self.options()?.connect().await
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

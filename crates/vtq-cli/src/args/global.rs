//! What every command takes.

use std::time::Duration;

use clap::{ArgAction, ValueEnum};
use vtq::{ConnectOptions, Vtq};

/// What every command takes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// The database, as libpq's URL or keyword string
    ///
    /// What it leaves open comes from libpq's environment: PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE, PGSSLMODE
    /// and so on, and a password from PGPASSFILE or ~/.pgpass. A password on the command line shows in `ps`: keep it
    /// in DATABASE_URL, PGPASSWORD or ~/.pgpass.
    #[arg(long, global = true, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<Secret>,
    /// Answer in JSON
    ///
    /// One document: an object, or an array where there can be many. Lengths of time have their unit in the name of
    /// the key, instants are RFC 3339, and numbers in messages are as they were sent, digit for digit.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only what was asked for: no remarks, no progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Log to standard error; -vv and -vvv log more
    ///
    /// Default: warnings. RUST_LOG, where set, says it in detail. Messages are never logged.
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use colours
    ///
    /// `auto`: on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

/// A text that may hold a password.
#[derive(Clone)]
struct Secret(String);

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

impl Global {
    /// Returns how to reach the database: the URL, and what it leaves open from libpq's environment.
    pub(crate) fn options(&self) -> vtq::Result<ConnectOptions> {
        let options = match &self.database_url {
            Some(url) if self.has_database_url() => ConnectOptions::from_url(&url.0)?,
            _ => ConnectOptions::default(),
        };
        options.with_env()
    }

    /// Tells whether a database was named, by option or by the variable; an empty name is none.
    pub(crate) fn has_database_url(&self) -> bool {
        self.database_url.as_ref().is_some_and(|url| !url.0.trim().is_empty())
    }

    /// Connects, and makes sure that the database answers.
    pub(crate) async fn connect(&self) -> vtq::Result<Vtq> {
        self.options()?.connect().await
    }

    /// Connects for statements that may take longer than most: an exact count, a change of a table.
    pub(crate) async fn connect_patiently(&self) -> vtq::Result<Vtq> {
        self.options()?.statement_limit(Duration::from_secs(600)).connect().await
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("...")
    }
}

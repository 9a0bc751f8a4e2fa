//! Connections: options in libpq's words, TLS, the pool, and connections outside of it.

mod connection;
mod dial;
mod env;
mod params;
mod passfile;
mod pool;
mod settings;
mod tls;
mod url;

use std::fmt;
use std::time::Duration;

pub use self::connection::{Connection, Dedicated};
use self::params::Params;
pub(crate) use self::pool::PooledClient;
pub use self::pool::Vtq;
use self::settings::{Keepalives, Settings};
use crate::error::{Error, Result};

/// How to reach the database: libpq's parameters, and the limits of this library.
///
/// Accepts what `psql` accepts: `postgres://` and `postgresql://` URLs, `keyword=value` strings, lists of hosts,
/// Unix sockets, all six values of `sslmode`. `Debug` never shows the password.
///
/// # Examples
/// ```
/// use vtq::ConnectOptions;
///
/// let options = ConnectOptions::from_url("postgres://ann:secret@db.example/shop?sslmode=verify-full")?.pool_size(8);
/// assert_eq!(options.redacted(), "postgres://ann@db.example:5432/shop");
/// # Ok::<(), vtq::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct ConnectOptions {
    params: Params,
    limits: Limits,
    pool_size: usize,
    pool_timeout: Duration,
    statement_limit: Duration,
}

/// Limits set by the program, which go before the parameters. The inner `None` means no limit.
#[derive(Clone, Copy, Default)]
struct Limits {
    connect_timeout: Option<Option<Duration>>,
    tcp_user_timeout: Option<Option<Duration>>,
    keepalives: Option<Keepalives>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            params: Params::default(),
            limits: Limits::default(),
            pool_size: 4,
            pool_timeout: Duration::from_secs(30),
            statement_limit: Duration::from_secs(30),
        }
    }
}

impl ConnectOptions {
    /// Reads a connection string: a URL, or a list of `keyword=value`. The environment has no part in it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig). The text never quotes the string.
    pub fn from_url(url: &str) -> Result<Self> {
        let options = Self { params: url::parse(url)?, ..Self::default() };
        options.settings()?;
        Ok(options)
    }

    /// Reads libpq's environment variables: `PGHOST`, `PGUSER`, `PGPASSWORD`, `PGSSLMODE` and so on.
    ///
    /// # Errors
    /// As [`with_env`](Self::with_env).
    pub fn from_env() -> Result<Self> {
        Self::default().with_env()
    }

    /// Takes from libpq's environment variables what is not given yet, parameter by parameter.
    ///
    /// A password given nowhere is looked up in `PGPASSFILE` or `~/.pgpass` when a connection is made, with
    /// libpq's check that nobody else may read the file. This is the only place where the library reads the
    /// environment.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig), also for a variable that would be wrong to
    /// ignore and is not supported, such as `PGSERVICE`.
    pub fn with_env(mut self) -> Result<Self> {
        self.params.fill_from(env::read(|name| std::env::var(name).ok())?);
        if self.params.get("passfile").is_none()
            && let Some(file) = passfile::default_file()
        {
            self.params.set("passfile", file)?;
        }
        self.settings()?;
        Ok(self)
    }

    /// Sets one libpq parameter by its name, such as `dbname` or `sslrootcert`; an empty value unsets it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) for a name or a value that is not known.
    pub fn param(mut self, name: &str, value: &str) -> Result<Self> {
        self.params.set(name, value)?;
        self.settings()?;
        Ok(self)
    }

    /// Sets the name that `pg_stat_activity` shows. Default: `vtq`.
    pub fn application_name(mut self, name: impl Into<String>) -> Self {
        self.params.set("application_name", name).expect("application_name is a known parameter");
        self
    }

    /// Sets how many connections the pool may hold. Default: 4.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// Sets how long a call may wait for a free connection of the pool. Default: 30 s.
    pub fn pool_timeout(mut self, limit: Duration) -> Self {
        self.pool_timeout = limit;
        self
    }

    /// Sets how long connecting to one address may take, handshake and login included. Default: 10 s.
    ///
    /// Zero means no limit. Goes before a `connect_timeout` in the URL or the environment.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.limits.connect_timeout = Some(Some(limit).filter(|limit| !limit.is_zero()));
        self
    }

    /// Sets the TCP keepalive: the first probe after `idle`, then one each `interval`, and the connection is
    /// given up after `retries` unanswered ones. Default: 30 s, 10 s, 3.
    pub fn keepalives(mut self, idle: Duration, interval: Duration, retries: u32) -> Self {
        self.limits.keepalives = Some(Keepalives { idle, interval, retries });
        self
    }

    /// Sets how long sent data may stay unacknowledged before the connection is given up. Default: 30 s.
    ///
    /// Zero leaves it to the system. Only on Linux, and not for Unix sockets.
    pub fn tcp_user_timeout(mut self, limit: Duration) -> Self {
        self.limits.tcp_user_timeout = Some(Some(limit).filter(|limit| !limit.is_zero()));
        self
    }

    /// Sets how long the answer to one statement may take. Default: 30 s.
    ///
    /// It is this client that stops waiting: nothing is set on the session, which a pooler would hand to others.
    pub fn statement_limit(mut self, limit: Duration) -> Self {
        self.statement_limit = limit;
        self
    }

    /// Describes the database for people, with no password: `postgres://user@host:5432/db`.
    pub fn redacted(&self) -> String {
        self.settings().map(|settings| settings.redacted()).unwrap_or_else(|_| "postgres://?".into())
    }

    /// Connects and makes sure that the database answers.
    ///
    /// # Errors
    /// As [`lazy`](Self::lazy); and when the database does not let this user in, or cannot be reached.
    pub async fn connect(self) -> Result<Vtq> {
        let vtq = self.lazy()?;
        vtq.ping().await?;
        Ok(vtq)
    }

    /// Makes the handle without connecting: the first call does.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) or [`ErrorKind::Tls`](crate::ErrorKind::Tls)
    /// for options, certificates or keys that cannot work.
    pub fn lazy(self) -> Result<Vtq> {
        if self.pool_size == 0 {
            return Err(Error::config("`pool_size` must be at least 1, and is 0"));
        }
        let settings = self.settings()?;
        if settings.load_tls()?.is_some() {
            settings.tls.warn_of_absent_files();
        }
        Ok(Vtq::new(self, settings))
    }

    fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::resolve(&self.params)?;
        let limits = &self.limits;
        settings.connect_timeout = limits.connect_timeout.unwrap_or(settings.connect_timeout);
        settings.tcp_user_timeout = limits.tcp_user_timeout.unwrap_or(settings.tcp_user_timeout);
        settings.keepalives = limits.keepalives.or(settings.keepalives);
        Ok(settings)
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("settings", &self.settings())
            .field("pool_size", &self.pool_size)
            .field("pool_timeout", &self.pool_timeout)
            .field("statement_limit", &self.statement_limit)
            .finish()
    }
}

#[cfg(test)]
mod tests;

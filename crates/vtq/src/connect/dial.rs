//! One connection: which servers are tried, in which order, with and without TLS.

use std::future::Future;
use std::net::IpAddr;
use std::path::PathBuf;

use rand::seq::SliceRandom;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection::Connection;
use super::passfile;
use super::settings::{Place, Session, Settings, Target};
use super::tls::{Mode, explain};
use crate::error::{Error, ErrorKind, Result};

/// Where distributions and the PostgreSQL project itself put the socket.
pub(super) const USUAL_SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// A connection, and what it takes to cancel a statement on it.
pub(super) struct Dialed {
    pub(super) client: Client,
    pub(super) connection: Connection,
    pub(super) tls: Option<MakeRustlsConnect>,
}

/// Connects to the first server that will do.
pub(super) async fn dial(settings: &Settings) -> Result<Dialed> {
    let tls = settings.load_tls()?;
    let mut targets = settings.targets.clone();
    if settings.is_balanced {
        targets.shuffle(&mut rand::rng());
    }
    let rounds: &[Session] = match settings.session {
        Session::PreferStandby => &[Session::Standby, Session::Any],
        _ => &[settings.session],
    };
    let mut failures = Vec::new();
    for session in rounds {
        failures.clear();
        for target in &targets {
            let attempt = Attempt { settings, target, tls: tls.as_ref(), session: *session };
            match attempt.run().await {
                Ok(dialed) => return Ok(dialed),
                // As in libpq: whom one server does not let in, the others are not asked about.
                Err(e) if e.kind() == ErrorKind::PermissionDenied => return Err(e),
                Err(e) => failures.push(e),
            }
        }
    }
    Err(all_failed(&targets, failures))
}

fn all_failed(targets: &[Target], mut failures: Vec<Error>) -> Error {
    if failures.len() == 1 {
        return failures.remove(0);
    }
    let names: Vec<String> = targets.iter().map(|target| format!("`{target}`")).collect();
    let causes: Vec<String> = failures.iter().map(one_line).collect();
    // One server that may come back is reason enough to try again.
    let kind = match failures.last() {
        Some(last) if !failures.iter().any(Error::is_retryable) => last.kind(),
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("cannot connect to any of {}", names.join(", "))).with_source(causes.join("; "))
}

fn one_line(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// One server, perhaps with several addresses.
struct Attempt<'a> {
    settings: &'a Settings,
    target: &'a Target,
    tls: Option<&'a MakeRustlsConnect>,
    session: Session,
}

/// How one try goes about TLS.
#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Plain,
    TlsIfOffered,
    Tls,
}

impl Attempt<'_> {
    async fn run(&self) -> Result<Dialed> {
        let config = self.base_config();
        match &self.target.place {
            Place::Unix(folder) => {
                let mut config = config;
                config.host_path(folder.clone().unwrap_or_else(|| self.usual_folder()));
                self.within_limit(self.try_once(config, Wire::Plain)).await
            }
            Place::Tcp { host, addr } => {
                self.refuse_unnamed_host(host.as_deref())?;
                let mut failure = None;
                for ip in self.within_limit(self.addresses(host.as_deref(), *addr)).await? {
                    let mut config = config.clone();
                    config.hostaddr(ip).host(host.clone().unwrap_or_else(|| ip.to_string()));
                    match self.try_wires(config).await {
                        Ok(dialed) => return Ok(dialed),
                        Err(e) => failure = Some(e),
                    }
                }
                Err(failure.unwrap_or_else(|| self.failed("the name has no address")))
            }
        }
    }

    fn base_config(&self) -> Config {
        let settings = self.settings;
        let mut config = Config::new();
        config
            .user(&settings.user)
            .dbname(&settings.dbname)
            .application_name(&settings.application_name)
            .port(self.target.port)
            .channel_binding(settings.channel_binding);
        let from_file = || {
            let file = settings.passfile.as_deref()?;
            passfile::lookup(file, self.target, &settings.dbname, &settings.user)
        };
        if let Some(password) = settings.password.clone().or_else(from_file) {
            config.password(password.0);
        }
        if let Some(options) = &settings.options {
            config.options(options);
        }
        if let Some(limit) = settings.tcp_user_timeout {
            config.tcp_user_timeout(limit);
        }
        match settings.keepalives {
            None => config.keepalives(false),
            Some(keepalives) => config
                .keepalives_idle(keepalives.idle)
                .keepalives_interval(keepalives.interval)
                .keepalives_retries(keepalives.retries),
        };
        config
    }

    fn usual_folder(&self) -> PathBuf {
        let socket = format!(".s.PGSQL.{}", self.target.port);
        let mut folders = USUAL_SOCKET_FOLDERS.into_iter().map(PathBuf::from);
        folders.find(|folder| folder.join(&socket).exists()).unwrap_or_else(|| USUAL_SOCKET_FOLDERS[0].into())
    }

    fn refuse_unnamed_host(&self, host: Option<&str>) -> Result<()> {
        match host {
            None if self.settings.tls.mode == Mode::VerifyFull => Err(Error::config(
                "sslmode is verify-full, but only `hostaddr` is given: `host` must name what the certificate is for",
            )),
            _ => Ok(()),
        }
    }

    async fn addresses(&self, host: Option<&str>, addr: Option<IpAddr>) -> Result<Vec<IpAddr>> {
        if let Some(addr) = addr {
            return Ok(vec![addr]);
        }
        let host = host.unwrap_or("localhost");
        let found = tokio::net::lookup_host((host, self.target.port)).await;
        let found = found.map_err(|e| self.failed("the host name cannot be resolved").with_source(e))?;
        let mut found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
        found.dedup();
        if self.settings.is_balanced {
            found.shuffle(&mut rand::rng());
        }
        Ok(found)
    }

    /// Tries the ways that `sslmode` allows, the preferred one first.
    async fn try_wires(&self, config: Config) -> Result<Dialed> {
        let (first, second) = match self.settings.tls.mode {
            Mode::Disable => (Wire::Plain, None),
            Mode::Allow => (Wire::Plain, Some(Wire::Tls)),
            Mode::Prefer => (Wire::TlsIfOffered, Some(Wire::Plain)),
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => (Wire::Tls, None),
        };
        let failure = match self.within_limit(self.try_once(config.clone(), first)).await {
            Ok(dialed) => return Ok(dialed),
            Err(e) => e,
        };
        match second {
            Some(second) if failure.kind() == ErrorKind::Tls || failure.is_barred() => {
                // Barred both ways, the first refusal is the one about the way that was meant.
                let retried = self.within_limit(self.try_once(config, second)).await;
                retried.map_err(|second| if second.is_barred() { failure } else { second })
            }
            _ => Err(failure),
        }
    }

    async fn try_once(&self, mut config: Config, wire: Wire) -> Result<Dialed> {
        config.ssl_mode(match wire {
            Wire::Plain => SslMode::Disable,
            Wire::TlsIfOffered => SslMode::Prefer,
            Wire::Tls => SslMode::Require,
        });
        if self.settings.tls.is_direct && wire == Wire::Tls {
            config.ssl_negotiation(SslNegotiation::Direct);
        }
        let tls = self.tls.filter(|_| wire != Wire::Plain).cloned();
        let connected = match tls.clone() {
            None => config.connect(NoTls).await.map(|(client, c)| (client, Connection::new(c))),
            Some(tls) => config.connect(tls).await.map(|(client, c)| (client, Connection::new(c))),
        };
        let (client, connection) = connected.map_err(|e| self.explain(&e))?;
        let mut dialed = Dialed { client, connection, tls };
        self.check_session(&mut dialed).await?;
        Ok(dialed)
    }

    async fn check_session(&self, dialed: &mut Dialed) -> Result<()> {
        if self.session == Session::Any {
            return Ok(());
        }
        let asked = dialed.client.simple_query(
            "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')",
        );
        let answer = dialed.connection.drive(asked).await.map_err(|e| self.explain(&e))?;
        let row = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let is = |column, word| row.and_then(|row| row.get(column)) == Some(word);
        let (is_standby, is_read_only) = (is(0, "t"), is(1, "on"));
        let wrong = match self.session {
            Session::ReadWrite if is_read_only => "it is read-only",
            Session::ReadOnly if !is_read_only => "it is not read-only",
            Session::Primary if is_standby => "it is a standby",
            Session::Standby if !is_standby => "it is not a standby",
            _ => return Ok(()),
        };
        Err(self.failed(wrong))
    }

    async fn within_limit<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        let Some(limit) = self.settings.connect_timeout else { return step.await };
        let late = |_| Error::timeout(&format!("connect to `{}`", self.target), limit);
        tokio::time::timeout(limit, step).await.map_err(late)?
    }

    fn explain(&self, error: &tokio_postgres::Error) -> Error {
        let host = match &self.target.place {
            Place::Tcp { host: Some(host), .. } => host.clone(),
            _ => self.target.to_string(),
        };
        let what = format!("connect to `{}`", self.target);
        if let Some(why) = explain(error, &self.settings.tls, &host) {
            return Error::new(ErrorKind::Tls, format!("cannot {what}")).with_source(why);
        }
        match std::error::Error::source(error) {
            Some(source) if source.to_string() == "password missing" => {
                Error::config(format!("cannot {what}"))
                    .with_source("the server asks for a password, and none is given")
            }
            _ => Error::db(what, error),
        }
    }

    fn failed(&self, why: &str) -> Error {
        Error::unavailable(format!("cannot connect to `{}`: {why}", self.target))
    }
}

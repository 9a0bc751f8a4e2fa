//! A server with the certificate that a test wants, and two clients that connect to it: this library, and psql.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use vtq::{ConnectOptions, Error};
use vtq_dev::{Cluster, StopMode};

use crate::authority::Pair;

const IS_TLS_USED: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

pub(crate) struct Server {
    cluster: Cluster,
    /// Files of the client.
    folder: TempDir,
}

/// How a connection attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Tls,
    Plain,
    Refused,
}

impl Server {
    /// Starts a server without TLS that lets everybody in by password; SCRAM would be slow in an unoptimized client.
    pub(crate) fn start() -> Self {
        let cluster = Cluster::builder().start().unwrap_or_else(|e| panic!("{e:#?}"));
        let server = Self { cluster, folder: tempfile::tempdir().unwrap() };
        server.write("pg_hba.conf", "local all all trust\nhost all all all password\n");
        server
    }

    /// Restarts with a certificate, or without TLS.
    pub(crate) fn present(&mut self, pair: Option<&Pair>) {
        if let Some(pair) = pair {
            self.write("server.crt", &pair.cert);
            self.write("server.key", &pair.key);
        }
        let ssl = if pair.is_some() { "on" } else { "off" };
        self.write("postgresql.auto.conf", &format!("ssl = {ssl}\nssl_ca_file = '{}'\n", self.client_ca()));
        self.cluster.restart(StopMode::Fast).unwrap_or_else(|e| panic!("{e:#?}"));
    }

    /// Writes a file into the data directory, as the server's user would.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let folder = self.cluster.data_dir();
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let owner = fs::metadata(&folder).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }

    /// Writes a file for the client, which nobody else may read, and returns its path.
    pub(crate) fn client_file(&self, name: &str, text: &str) -> String {
        let file = self.folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// A home directory with none of libpq's files in it, unless a test puts them there.
    pub(crate) fn home(&self) -> PathBuf {
        let home = self.folder.path().join("home");
        fs::create_dir_all(&home).unwrap();
        home
    }

    /// A connection string to this server under the name `host`.
    pub(crate) fn dsn(&self, host: &str, more: &str) -> String {
        let url = self.cluster.url();
        let password = url.split([':', '@']).nth(2).unwrap();
        format!(
            "host={host} hostaddr=127.0.0.1 port={} user=postgres password={password} dbname=postgres {more}",
            self.cluster.port()
        )
    }

    /// A connection string to this server's Unix socket.
    pub(crate) fn socket_dsn(&self, more: &str) -> String {
        let folder = self.cluster.socket_dir().display();
        format!("host={folder} port={} user=postgres dbname=postgres {more}", self.cluster.port())
    }

    /// Connects by both clients; they must agree.
    #[track_caller]
    pub(crate) fn outcome(&self, dsn: &str) -> Outcome {
        let (ours, error) = outcome_of(&by_vtq(dsn));
        if let Some(theirs) = self.by_psql(dsn) {
            let (theirs, text) = outcome_of(&theirs);
            assert_eq!(ours, theirs, "\n  with: {dsn}\n  vtq:  {ours:?} {error}\n  psql: {theirs:?} {text}");
        }
        ours
    }

    /// Connects by psql, if there is one.
    pub(crate) fn by_psql(&self, dsn: &str) -> Option<Result<bool, String>> {
        let mut psql = Command::new("psql");
        psql.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.home());
        let output = psql.args(["-XAtw", "-d", dsn, "-c", IS_TLS_USED]).output().ok()?;
        Some(match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim() == "t"),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        })
    }

    fn client_ca(&self) -> &'static str {
        let file: &Path = &self.cluster.data_dir().join("client-ca.crt");
        if file.exists() { "client-ca.crt" } else { "" }
    }
}

/// Connects by this library: was TLS used?
pub(crate) fn by_vtq(dsn: &str) -> Result<bool, Error> {
    ask(ConnectOptions::from_url(dsn)?)
}

pub(crate) fn ask(options: ConnectOptions) -> Result<bool, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, _notifications) = options.lazy()?.dedicated().await?.spawn();
        let messages = client.simple_query(IS_TLS_USED).await.expect("the query runs");
        let mut rows = messages.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Ok(rows.next() == Some("t"))
    })
}

/// The whole chain of an error in one line.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn outcome_of<E: ToText>(answer: &Result<bool, E>) -> (Outcome, String) {
    match answer {
        Ok(true) => (Outcome::Tls, String::new()),
        Ok(false) => (Outcome::Plain, String::new()),
        Err(e) => (Outcome::Refused, e.to_text()),
    }
}

trait ToText {
    fn to_text(&self) -> String;
}

impl ToText for Error {
    fn to_text(&self) -> String {
        chain(self)
    }
}

impl ToText for String {
    fn to_text(&self) -> String {
        self.clone()
    }
}

//! The cluster handle.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::account::Account;
use crate::conf::{self, Settings};
use crate::folder::Folder;
use crate::locate::Binaries;
use crate::server::{self, Launch, Server};
use crate::watchdog::Watchdog;
use crate::{Builder, Error, Kept, initdb, shell};

/// Another program may take a port between our asking for a free one and the server's binding it.
const PORT_TRIES: u32 = 5;

/// How long a server that was killed may hinder its successor.
const RESTART_LIMIT: Duration = Duration::from_secs(15);

/// How a server is stopped; the words of `pg_ctl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Waits until every session has ended.
    Smart,
    /// Ends the sessions, rolls their transactions back, and shuts down cleanly.
    Fast,
    /// Drops everything; the next start recovers from the log.
    Immediate,
}

impl StopMode {
    fn signal(self) -> Signal {
        match self {
            Self::Smart => Signal::SIGTERM,
            Self::Fast => Signal::SIGINT,
            Self::Immediate => Signal::SIGQUIT,
        }
    }
}

/// A throwaway PostgreSQL: a server of our own, in a folder of its own.
///
/// The superuser is `postgres`. Over the socket, which only this user can reach, it needs no password; over TCP, on
/// 127.0.0.1, which every user of the machine can reach, it needs the one in the [`url`](Self::url).
///
/// Dropping it stops the server at once and removes the folder. The same happens when this process dies.
#[derive(Debug)]
pub struct Cluster {
    // Dropped in this order: the server lets go of its files, they are removed, and nothing is left to watch.
    server: Option<Server>,
    pub(crate) folder: Folder,
    watchdog: Watchdog,
    pub(crate) account: Account,
    binaries: Binaries,
    settings: Settings,
    password: String,
    port: u16,
}

impl Cluster {
    /// Starts to describe a cluster.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn create(builder: Builder) -> Result<Self, Error> {
        let account = Account::choose()?;
        let binaries = Binaries::find(builder.bin_dir.as_deref(), &account)?;
        let folder = Folder::create(builder.base_dir.as_deref(), &account)?;
        let watchdog = Watchdog::start(folder.path())?;
        let password = initdb::random_password()?;
        let settings = builder.settings;
        let mut cluster =
            Self { server: None, folder, watchdog, account, binaries, settings, password, port: 0 };
        initdb::Run {
            account: &cluster.account,
            initdb: cluster.binaries.folder.join("initdb"),
            folder: cluster.folder.path(),
            group: cluster.watchdog.group(),
        }
        .run(&cluster.password)?;
        for tries in 1.. {
            cluster.port = free_port()?;
            match cluster.launch() {
                Err(_) if tries < PORT_TRIES && cluster.log_tail(20).contains("could not bind") => continue,
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        Ok(cluster)
    }

    /// Everything but the data, with a port and a folder of its own.
    pub(crate) fn sibling(&self) -> Result<Self, Error> {
        let folder = Folder::create(self.folder.path().parent(), &self.account)?;
        Ok(Self {
            server: None,
            watchdog: Watchdog::start(folder.path())?,
            folder,
            account: self.account.clone(),
            binaries: self.binaries.clone(),
            settings: self.settings.clone(),
            password: self.password.clone(),
            port: free_port()?,
        })
    }

    /// A libpq URL of the database `postgres`, over TCP, with its password.
    pub fn url(&self) -> String {
        self.url_for("postgres")
    }

    /// A libpq URL of the database `db`, over TCP, with its password.
    pub fn url_for(&self, db: &str) -> String {
        let Self { password, port, .. } = self;
        format!("postgresql://postgres:{password}@127.0.0.1:{port}/{}", percent_encode(db))
    }

    /// A libpq URL of the database `db`, over the Unix socket; it has no password and needs none.
    pub fn socket_url_for(&self, db: &str) -> String {
        let host = percent_encode(&self.socket_dir().to_string_lossy());
        format!("postgresql://postgres@{host}:{}/{}", self.port, percent_encode(db))
    }

    /// A shell command that opens the database `db` in psql.
    pub fn psql_line(&self, db: &str) -> String {
        let beside = self.binaries.folder.join("psql");
        let is_in_path = std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("psql").is_file()));
        let psql = if is_in_path || !beside.is_file() { "psql".to_owned() } else { shell::path(&beside) };
        let (host, db) = (shell::path(self.socket_dir()), shell::word(db));
        format!("{psql} -h {host} -p {} -U postgres -d {db}", self.port)
    }

    /// The folder of the Unix socket.
    pub fn socket_dir(&self) -> &Path {
        self.folder.path()
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.data()
    }

    /// The TCP port on 127.0.0.1, and the number in the socket's name; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's major version, such as 17.
    pub fn version(&self) -> u32 {
        self.binaries.major
    }

    /// The server's process id; `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Server::pid)
    }

    /// The last `lines` lines of the server's log.
    pub fn log_tail(&self, lines: usize) -> String {
        server::tail(&self.folder.log(), lines)
    }

    /// Stops the server and keeps its data.
    ///
    /// # Errors
    /// If it is stopped already, or does not stop within 30 seconds.
    pub fn stop(&mut self, mode: StopMode) -> Result<(), Error> {
        self.running()?.stop(mode.signal())?;
        self.server = None;
        Ok(())
    }

    /// Kills the server with SIGKILL, as the kernel does when memory runs out.
    ///
    /// # Errors
    /// If it is stopped already.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.running()?.stop(Signal::SIGKILL)?;
        self.server = None;
        Ok(())
    }

    /// Starts a stopped server, at the same address and with the same data.
    ///
    /// # Errors
    /// If it is running, or does not start: the last lines of its log are the cause.
    pub fn start_again(&mut self) -> Result<(), Error> {
        if let Some(pid) = self.pid() {
            return Err(Error::new(format!("the server is running already (pid {pid})")));
        }
        let started = Instant::now();
        loop {
            let Err(error) = self.launch() else { return Ok(()) };
            // The children of a killed server go when they notice; a connection elsewhere may have got our port.
            let log = self.log_tail(5);
            let passes = ["pre-existing shared memory", "could not bind", "lock file"];
            if started.elapsed() > RESTART_LIMIT || !passes.iter().any(|words| log.contains(words)) {
                return Err(error);
            }
            sleep(Duration::from_millis(100));
        }
    }

    /// Stops the server and starts it again.
    ///
    /// # Errors
    /// As for [`stop`](Self::stop) and [`start_again`](Self::start_again).
    pub fn restart(&mut self, mode: StopMode) -> Result<(), Error> {
        self.stop(mode)?;
        self.start_again()
    }

    /// Makes a primary of a [`standby`](Self::standby), and waits until it takes writes.
    ///
    /// # Errors
    /// If it is stopped or is no standby.
    pub fn promote(&mut self) -> Result<(), Error> {
        if !self.data_dir().join("standby.signal").exists() {
            return Err(Error::new("this cluster is not a standby"));
        }
        self.running()?;
        let Some(mut server) = self.server.take() else { return Ok(()) };
        let promoted = server.promote(&self.launch_plan());
        self.server = Some(server);
        promoted
    }

    /// Leaves the server running and its folder in place, also after this process has ended.
    ///
    /// # Errors
    /// If the server is stopped or its folder cannot be written to.
    pub fn keep(mut self) -> Result<Kept, Error> {
        self.running()?;
        let url = self.url();
        let Self { server, folder, .. } = self;
        let folder = folder.keep()?;
        let pid = server.map(Server::release).unwrap_or_default();
        Ok(Kept { url, folder, pid })
    }

    fn running(&mut self) -> Result<&mut Server, Error> {
        self.server.as_mut().ok_or_else(|| Error::new("the server is stopped"))
    }

    fn launch(&mut self) -> Result<(), Error> {
        let text = self.settings.render(self.socket_dir(), self.port)?;
        let file = self.data_dir().join(conf::FILE);
        fs::write(&file, text)
            .and_then(|()| self.account.give(&file))
            .map_err(|error| Error::caused(format!("cannot write {}", file.display()), error))?;
        self.server = Some(Server::start(&self.launch_plan())?);
        Ok(())
    }

    fn launch_plan(&self) -> Launch<'_> {
        Launch {
            account: &self.account,
            postgres: self.binaries.folder.join("postgres"),
            data: self.data_dir(),
            log: self.folder.log(),
            group: self.watchdog.group(),
        }
    }
}

fn free_port() -> Result<u16, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Error::caused("cannot find a free port on 127.0.0.1", error))
}

fn percent_encode(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_for_a_url() {
        assert_eq!(percent_encode("vtq_t_1-2.x~"), "vtq_t_1-2.x~");
        assert_eq!(percent_encode("/tmp/a b?é"), "%2Ftmp%2Fa%20b%3F%C3%A9");
    }
}

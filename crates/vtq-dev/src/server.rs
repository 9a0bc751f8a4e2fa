//! The `postgres` process: starts it, waits until it is ready, stops it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Error;
use crate::account::Account;

const POLL: Duration = Duration::from_millis(10);

/// A standby, or a server after a crash, replays first.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// How much of the log an error carries.
const TAIL_LINES: usize = 15;
const TAIL_BYTES: u64 = 64 * 1024;

/// What it takes to start the server.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) account: &'a Account,
    pub(crate) postgres: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) log: PathBuf,
    /// The watchdog's process group.
    pub(crate) group: i32,
}

/// A running server; stopped at once when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
}

impl Server {
    /// Starts the server and waits until it accepts connections.
    pub(crate) fn start(launch: &Launch<'_>) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::caused("cannot start postgres", error);
        let log = OpenOptions::new().create(true).append(true).open(&launch.log).map_err(failed)?;
        let child = launch
            .account
            .command(&launch.postgres, &launch.data)
            .arg("-D")
            .arg(&launch.data)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            .process_group(launch.group)
            .spawn()
            .map_err(failed)?;
        let mut server = Self { child };
        server.wait_until(launch, "ready", |server| {
            PidFile::read(&launch.data).is_some_and(|file| {
                // `standby` is as ready as a standby without `hot_standby` gets.
                file.pid == server.pid() && ["ready", "standby"].contains(&file.state.as_str())
            })
        })?;
        Ok(server)
    }

    /// `condition` looks at the server's files. Every build writes those, while `pg_isready` is not in all of them,
    /// and a connection would need a client here.
    fn wait_until(
        &mut self,
        launch: &Launch<'_>,
        goal: &str,
        condition: impl Fn(&Self) -> bool,
    ) -> Result<(), Error> {
        let started = Instant::now();
        while started.elapsed() < START_LIMIT {
            if let Some(status) = self.exited()? {
                let message = format!("postgres ended before it was {goal}: {status}");
                return Err(Error::caused(message, tail(&launch.log, TAIL_LINES)));
            }
            if condition(self) {
                return Ok(());
            }
            sleep(POLL);
        }
        let message = format!("postgres was not {goal} within {} s", START_LIMIT.as_secs());
        Err(Error::caused(message, tail(&launch.log, TAIL_LINES)))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The status, once the process has ended.
    pub(crate) fn exited(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(|error| Error::caused("cannot wait for postgres", error))
    }

    /// Ends recovery, as `pg_ctl promote` does, and waits until the server is a primary.
    pub(crate) fn promote(&mut self, launch: &Launch<'_>) -> Result<(), Error> {
        File::create(launch.data.join("promote"))
            .map_err(|error| Error::caused("cannot ask the standby to promote", error))?;
        self.signal(Signal::SIGUSR1)?;
        self.wait_until(launch, "a primary", |_| is_primary(&launch.data))
    }

    /// Sends `signal` and waits for the end.
    pub(crate) fn stop(&mut self, signal: Signal) -> Result<(), Error> {
        self.signal(signal)?;
        let started = Instant::now();
        while started.elapsed() < STOP_LIMIT {
            if self.exited()?.is_some() {
                return Ok(());
            }
            sleep(POLL);
        }
        let hint = if signal == Signal::SIGTERM { ": sessions are still open" } else { "" };
        Err(Error::new(format!("postgres did not stop within {} s{hint}", STOP_LIMIT.as_secs())))
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        // While we have not waited for it, the number cannot belong to another process.
        if self.exited()?.is_some() {
            return Ok(());
        }
        kill(pid(self.pid()), signal).map_err(|errno| Error::caused(format!("cannot send {signal}"), errno))
    }

    /// Lets the process live on without us.
    pub(crate) fn release(self) -> u32 {
        let pid = self.pid();
        std::mem::forget(self);
        pid
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.stop(Signal::SIGQUIT).is_err() {
            let _ = self.stop(Signal::SIGKILL);
        }
    }
}

/// Whether the control file says that the server takes writes; a hot standby is "ready" all along.
fn is_primary(data: &Path) -> bool {
    // `ControlFileData` of `pg_control.h`: a 64-bit and two 32-bit numbers come before `state`, in the machine's own
    // byte order, and have since long before version 14. `pg_ctl promote` waits for the same.
    const STATE: std::ops::Range<usize> = 16..20;
    const IN_PRODUCTION: u32 = 6;
    let bytes = fs::read(data.join("global/pg_control")).unwrap_or_default();
    bytes.get(STATE).is_some_and(|state| state == IN_PRODUCTION.to_ne_bytes())
}

/// The last `lines` lines of a log.
pub(crate) fn tail(log: &Path, lines: usize) -> String {
    let end = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&end().unwrap_or_default()).into_owned();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Stops a server that lost both its owner and its watchdog.
pub(crate) fn stop_stray(data: &Path) {
    let Some(file) = PidFile::read(data) else { return };
    // The folder is old, so the number may be a stranger's by now.
    if !is_server_of(file.pid, data) || kill(pid(file.pid), Signal::SIGQUIT).is_err() {
        return;
    }
    let started = Instant::now();
    // The process may stay as a zombie where nobody waits for orphans; its file does not.
    while started.elapsed() < Duration::from_secs(5)
        && kill(pid(file.pid), None).is_ok()
        && PidFile::read(data).is_some()
    {
        sleep(POLL);
    }
}

fn is_server_of(pid: u32, data: &Path) -> bool {
    let arguments = match fs::read(format!("/proc/{pid}/cmdline")) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim_end_matches('\0').replace('\0', " "),
        Err(_) => Command::new("ps")
            .args(["-o", "args=", "-p", &pid.to_string()])
            .output()
            .map(|output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
            .unwrap_or_default(),
    };
    arguments.ends_with(&format!("/postgres -D {}", data.display()))
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.cast_signed())
}

/// What the server says of itself in `postmaster.pid`.
struct PidFile {
    pid: u32,
    /// `starting`, `stopping`, `ready` or `standby`; empty until the server has got that far.
    state: String,
}

impl PidFile {
    fn read(data: &Path) -> Option<Self> {
        let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
        Self::parse(&text)
    }

    /// Line 1 is the process id, line 8 the state (`LOCK_FILE_LINE_*` in the server's `pidfile.h`).
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let pid = lines.next()?.parse().ok().filter(|pid| *pid > 1)?;
        let state = lines.nth(6).unwrap_or_default().to_owned();
        Some(Self { pid, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_on_line_eight_of_the_pid_file() {
        let text = "4711\n/data\n1700000000\n5433\n/tmp\n127.0.0.1\n  5243   32768\nready   \n";

        let file = PidFile::parse(text).unwrap();
        assert_eq!((file.pid, file.state.as_str()), (4711, "ready"));

        let early = PidFile::parse("4711\n/data\n").unwrap();
        assert_eq!((early.pid, early.state.as_str()), (4711, ""));

        assert!(PidFile::parse("").is_none());
        assert!(PidFile::parse("-1\n").is_none());
        assert!(PidFile::parse("1\n").is_none());
    }

    #[test]
    fn tail_gives_the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "one\ntwo\nthree\n").unwrap();

        assert_eq!(tail(&log, 2), "two\nthree");
        assert_eq!(tail(&log, 9), "one\ntwo\nthree");
        assert_eq!(tail(&folder.path().join("none"), 2), "");
    }

    #[test]
    fn this_process_is_no_server() {
        assert!(!is_server_of(std::process::id(), Path::new("/data")));
    }
}

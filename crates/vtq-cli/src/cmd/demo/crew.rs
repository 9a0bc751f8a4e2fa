//! The worker processes, one after the other: whoever is killed has a successor, as a service manager would do it.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::place::Place;

/// How long a worker may take to stop before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// The worker process of the hour. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Crew {
    url: Option<String>,
    pace: Duration,
    child: Option<Child>,
    /// The worker stops when this is closed. Not left in the child: waiting for that would close it.
    stdin: Option<ChildStdin>,
    /// How many processes there have been.
    pub(super) size: u32,
}

impl Crew {
    /// Makes one that has not started yet.
    pub(super) fn new(place: &Place, pace: Duration) -> Self {
        Self { url: place.throwaway_url(), pace, child: None, stdin: None, size: 0 }
    }

    /// Starts the next worker; returns its process id.
    pub(super) fn start(&mut self) -> anyhow::Result<u32> {
        let mut command = Command::new(program()?);
        match &self.url {
            // What libpq's variables say is about another database.
            Some(url) => {
                for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
                    command.env_remove(name);
                }
                command.env("DATABASE_URL", url).arg("demo");
            }
            // The same command line names the same database, and shows no more of it than it did.
            None => {
                command.args(env::args_os().skip(1));
            }
        }
        // A worker's warnings would stand between the lines of the demo.
        if env::var_os("RUST_LOG").is_none() {
            command.env("RUST_LOG", "error");
        }
        let pace = self.pace.as_millis().to_string();
        let mut child = command
            .arg0("vtq")
            .args(["--worker-child", &pace])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Ctrl-C goes to the foreground group: it is the demo's to say when a worker stops.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a worker process")?;
        let pid = child.id().unwrap_or_default();
        self.stdin = child.stdin.take();
        self.child = Some(child);
        self.size += 1;
        Ok(pid)
    }

    /// Waits until the worker is gone, and makes sure that it was killed: any other end is trouble.
    pub(super) async fn killed(&mut self) -> anyhow::Result<()> {
        let Some(child) = &mut self.child else { return std::future::pending().await };
        let status = child.wait().await.context("cannot wait for the worker process")?;
        self.child = None;
        check(status)
    }

    /// Tells the worker to stop, and waits for it.
    pub(super) async fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        self.stdin = None;
        if timeout(STOP_LIMIT, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
    }
}

/// This program, also when its file has been replaced by a newer one in the meantime.
fn program() -> anyhow::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Ok(running) } else { env::current_exe().context("cannot find the vtq program") }
}

fn check(status: ExitStatus) -> anyhow::Result<()> {
    match (status.signal(), status.code()) {
        (Some(9), _) => Ok(()),
        (Some(signal), _) => bail!("the worker process ended by signal {signal}"),
        // It has said why.
        (None, code) => bail!("the worker process ended with exit code {}", code.unwrap_or_default()),
    }
}

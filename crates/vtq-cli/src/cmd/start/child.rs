//! Commands as processes, each the leader of a process group of its own.
//!
//! The group is what makes it possible to end a command with all that it has started. It also keeps a Ctrl-C at the
//! terminal from the commands: vtq gets it, and lets them finish.
//!
//! A vtq that is killed with SIGKILL cannot end anything: its commands go on. The kernel could be told to end them
//! (PR_SET_PDEATHSIG), but only between fork and exec, which is unsafe code, and this project has none.

use std::collections::HashSet;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// How often a group that was asked to end is looked at: the system tells of its leader's end only.
const LOOK: Duration = Duration::from_millis(20);

/// All groups that are alive, so that they can be ended at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups(Arc<Mutex<Live>>);

#[derive(Debug, Default)]
struct Live {
    pids: HashSet<Pid>,
    is_closed: bool,
}

impl Groups {
    /// Kills every group, and lets no new one begin.
    pub(super) fn kill_all(&self) {
        let mut live = self.lock();
        live.is_closed = true;
        for pid in live.pids.drain() {
            let _ = killpg(pid, Signal::SIGKILL);
        }
    }

    /// Starts a command. The lock is held meanwhile: else a group could begin unseen by [`kill_all`](Self::kill_all).
    fn spawn(&self, command: &mut Command) -> io::Result<(tokio::process::Child, Group)> {
        let mut live = self.lock();
        if live.is_closed {
            return Err(io::Error::other("the worker is leaving"));
        }
        let child = command.spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the new process has no id"))?;
        live.pids.insert(pid);
        Ok((child, Group { pid, groups: self.clone(), is_over: false }))
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to signal a group; when it is dropped, what is left of the group is killed.
#[derive(Debug)]
struct Group {
    pid: Pid,
    groups: Groups,
    /// Set as soon as the leader was reaped and the group was seen empty or was killed: from then on its number may
    /// be given to somebody else.
    is_over: bool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if !self.is_over {
            // It fails for a group that is gone, which is what was wanted.
            let _ = killpg(self.pid, signal);
        }
    }

    fn is_alive(&self) -> bool {
        !self.is_over && killpg(self.pid, None).is_ok()
    }

    fn end(&mut self) {
        if self.is_over {
            return;
        }
        self.signal(Signal::SIGKILL);
        self.is_over = true;
        self.groups.lock().pids.remove(&self.pid);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// A command line, ready to be started any number of times.
#[derive(Debug, Clone)]
pub(super) struct Program {
    line: String,
    groups: Groups,
    grace: Duration,
}

impl Program {
    /// `grace` is how long a command has between SIGTERM and SIGKILL.
    pub(super) fn new(line: String, groups: Groups, grace: Duration) -> Self {
        Self { line, groups, grace }
    }

    /// Returns the command, to be completed with what it gets and where its output goes.
    ///
    /// Through a shell, as in cron, make or a Dockerfile: what people type first has a pipe, a `&&` or a `$VTQ_MSG_ID`
    /// in it, and one plain command costs nothing more, for dash and bash replace themselves by it.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.line).process_group(0).kill_on_drop(true);
        command
    }

    /// Starts what [`command`](Self::command) returned.
    pub(super) fn start(&self, command: &mut Command) -> io::Result<Child> {
        let (process, group) = self.groups.spawn(command.stdin(Stdio::piped()))?;
        Ok(Child { process, group, grace: self.grace })
    }
}

/// A command that runs. Dropping it kills its whole group.
#[derive(Debug)]
pub(super) struct Child {
    // Before the process: its number is the group's for as long as it is not reaped.
    group: Group,
    process: tokio::process::Child,
    grace: Duration,
}

impl Child {
    pub(super) fn stdin(&mut self) -> Option<ChildStdin> {
        self.process.stdin.take()
    }

    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.process.stdout.take()
    }

    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.process.stderr.take()
    }

    /// Tells whether it still runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Waits until the command ends by itself; what it left running in its group is killed then.
    ///
    /// Cancel safe.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.process.wait().await;
        self.group.end();
        status
    }

    /// Asks the group to end, and kills it after the grace.
    ///
    /// The grace is the group's, not the leader's: a shell dies of SIGTERM at once, and what it runs may need longer.
    pub(super) async fn stop(&mut self) -> io::Result<ExitStatus> {
        self.group.signal(Signal::SIGTERM);
        let all_ended = async {
            let _ = self.process.wait().await;
            while self.group.is_alive() {
                sleep(LOOK).await;
            }
        };
        let _ = timeout(self.grace, all_ended).await;
        self.group.signal(Signal::SIGKILL);
        self.wait().await
    }
}

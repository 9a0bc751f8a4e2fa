//! Makes a cluster vanish with the process that owns it, whatever ends that process.
//!
//! Destructors do not run on SIGKILL, on Ctrl-C without a handler, on an abort, or for a `static` at exit. So a
//! small shell waits on a pipe whose other end only we hold: when we are gone, the kernel closes it.
//!
//! The shell leads a process group of its own, and the server is started inside that group. Ctrl-C at a terminal goes
//! to the foreground group: neither of the two gets it, so the server does not shut down behind the back of an owner
//! that wants to finish its work first.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Error;

#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
}

impl Watchdog {
    /// Starts to watch over `folder`.
    pub(crate) fn start(folder: &Path) -> Result<Self, Error> {
        // All of it shows up in `ps`.
        let script: Vec<&str> =
            include_str!("watchdog.sh").lines().filter(|line| !line.starts_with('#')).collect();
        let shell = Command::new("/bin/sh")
            .args(["-c", &script.join("\n"), "vtq-dev-watchdog"])
            .arg(folder)
            .stdin(Stdio::piped())
            // Not ours: a reader of our output would wait for the watchdog to close it.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| Error::caused("cannot start `/bin/sh` to watch over the server", error))?;
        Ok(Self { shell })
    }

    /// The process group that is ended with us.
    pub(crate) fn group(&self) -> i32 {
        self.shell.id().cast_signed()
    }
}

impl Drop for Watchdog {
    /// Tells the watchdog to leave everything as it is.
    fn drop(&mut self) {
        if let Some(mut pipe) = self.shell.stdin.take()
            // Someone may have killed it; then writing could end us too, where SIGPIPE has its default action.
            && matches!(self.shell.try_wait(), Ok(None))
        {
            let _ = pipe.write_all(b"leave\n");
        }
        let _ = self.shell.wait();
    }
}

//! The signals that stop a worker.

use std::{fs, io};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM from supervisors, SIGINT from the terminal, SIGHUP when the terminal is gone.
#[derive(Debug)]
pub(super) struct Signals {
    term: Option<Signal>,
    int: Option<Signal>,
    hup: Option<Signal>,
}

impl Signals {
    /// From here on none of them ends the process by itself.
    ///
    /// One that is ignored stays so: that is how `nohup` and a shell's `&` say that it is not meant for us.
    pub(super) fn catch() -> io::Result<Self> {
        let ignored = ignored();
        let catch = |kind: SignalKind| {
            let is_ignored = ignored & (1 << (kind.as_raw_value() - 1)) != 0;
            if is_ignored { Ok(None) } else { signal(kind).map(Some) }
        };
        Ok(Self {
            term: catch(SignalKind::terminate())?,
            int: catch(SignalKind::interrupt())?,
            hup: catch(SignalKind::hangup())?,
        })
    }

    /// Waits for one, and names it. Cancel safe.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            () = given(&mut self.term) => "SIGTERM",
            () = given(&mut self.int) => "SIGINT",
            () = given(&mut self.hup) => "SIGHUP",
        }
    }
}

async fn given(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// The set of signals that this process was started to ignore; where there is no /proc, none.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

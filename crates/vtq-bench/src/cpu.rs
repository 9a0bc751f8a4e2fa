//! The server's processor time, from /proc.

use std::fs;

use anyhow::{Context, Result, bail};
use nix::unistd::{SysconfVar, sysconf};

/// Seconds of processor time, user and system, that the server with this process id has used so far: the postmaster,
/// its children, and those of its children that have ended.
///
/// Autovacuum, checkpoints and the WAL writer are in it: whoever makes work for them pays.
pub(crate) fn seconds(postmaster: u32) -> Result<f64> {
    let per_second = sysconf(SysconfVar::CLK_TCK)
        .context("cannot ask for the clock's tick")?
        .filter(|ticks| *ticks > 0)
        .context("this system does not say how long a tick is")?;
    // A child that ends in between would be counted twice or not at all: then count again.
    for _ in 0..100 {
        let before = children(postmaster)?;
        let own = ticks(postmaster, true)?;
        let parts: Option<Vec<u64>> = before.iter().map(|pid| ticks(*pid, false).ok()).collect();
        if let Some(parts) = parts.filter(|_| children(postmaster).is_ok_and(|after| after == before)) {
            return Ok((own + parts.iter().sum::<u64>()) as f64 / per_second as f64);
        }
    }
    bail!("the server's processes come and go too fast to be counted")
}

fn children(parent: u32) -> Result<Vec<u32>> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    if let Ok(text) = fs::read_to_string(&path) {
        return Ok(text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect());
    }
    // Kernels without that file: look at every process.
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot list processes")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if field(pid, 1).is_ok_and(|ppid| ppid == u64::from(parent)) {
            found.push(pid);
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn ticks(pid: u32, with_ended_children: bool) -> Result<u64> {
    // utime, stime, cutime, cstime are fields 14 to 17 of proc(5); `field` counts from the state, field 3.
    let last = if with_ended_children { 14 } else { 12 };
    (11..=last).map(|at| field(pid, at)).sum()
}

/// A field of /proc/<pid>/stat, counted from the one behind the name, which may hold spaces and brackets.
fn field(pid: u32, at: usize) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).context("cannot read a process's times")?;
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace()
        .nth(at)
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("process {pid} has no field {at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_an_ended_child_is_counted() {
        let own = std::process::id();
        let before = seconds(own).unwrap_or(f64::MAX);

        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let status = std::process::Command::new("sh").args(["-c", work]).status();

        assert!(status.is_ok_and(|status| status.success()));
        assert!(seconds(own).is_ok_and(|after| after > before + 0.02));
    }
}

//! What the server's processes have used of the CPU, where this process can see them: on the same Linux host.
//!
//! See proc(5), <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// Clock ticks in a second, as /proc counts them: 100 on every Linux that Rust knows.
const TICKS: u64 = 100;
/// How far two clocks' words about the start of the same process may differ.
const SLACK_SECONDS: f64 = 3.0;

/// The server's processes, found by one of them.
#[derive(Debug)]
pub(super) struct Server {
    postmaster: u32,
    /// What each backend of the bench had used when it was last seen; one that has ended stays.
    seen: HashMap<u32, Seen>,
}

/// What the bench's own backends have used, by process.
#[derive(Debug, Clone, Copy)]
struct Seen {
    first: u64,
    last: u64,
}

/// One line of /proc/<pid>/stat, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    parent: u32,
    /// Ticks: its own, and of its children that have ended.
    used: u64,
    children: u64,
    /// Ticks after the boot.
    started: u64,
}

impl Server {
    /// Finds the server by one of its backends, and makes sure that the process of that number is the backend: behind
    /// a network, a container or a pooler it is another one, or none.
    pub(super) fn find(backend: u32, backend_started: f64) -> Option<Self> {
        let stat = Stat::of(backend)?;
        let boot: f64 = fs::read_to_string("/proc/stat")
            .ok()?
            .lines()
            .find_map(|line| line.strip_prefix("btime "))?
            .trim()
            .parse()
            .ok()?;
        let started = boot + stat.started as f64 / TICKS as f64;
        let is_it = stat.name.starts_with("postgres") && (started - backend_started).abs() < SLACK_SECONDS;
        let server = Self { postmaster: stat.parent, seen: HashMap::new() };
        (is_it && Stat::of(stat.parent)?.name.starts_with("postgres")).then_some(server)
    }

    /// Looks at the bench's own backends. Each counts from when it is first seen; `begins` says that the clock has not
    /// started, else one that is new has done all its work within the run.
    pub(super) fn look(&mut self, backends: &[i32], begins: bool) {
        for backend in backends {
            let backend = backend.unsigned_abs();
            let Some(stat) = Stat::of(backend).filter(|stat| stat.parent == self.postmaster) else {
                continue;
            };
            let first = if begins { stat.used } else { 0 };
            self.seen.entry(backend).or_insert(Seen { first, last: 0 }).last = stat.used;
        }
    }

    /// What the bench's own backends have used since they were first seen.
    pub(super) fn own(&self) -> Duration {
        length(self.seen.values().map(|seen| seen.last.saturating_sub(seen.first)).sum())
    }

    /// What all processes of the server have ever used, those included that have ended.
    pub(super) fn all(&self) -> Option<Duration> {
        let postmaster = Stat::of(self.postmaster)?;
        let children = fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(Stat::of)
            .filter(|stat| stat.parent == self.postmaster);
        let used: u64 = children.map(|stat| stat.used).sum();
        Some(length(postmaster.used + postmaster.children + used))
    }
}

/// What this process has used.
pub(super) fn this_process() -> Option<Duration> {
    Stat::of(std::process::id()).map(|stat| length(stat.used))
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name stands in brackets and may hold anything, brackets included.
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
        Some(Self {
            name: before.split_once('(')?.1.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            used: number(11)? + number(12)?,
            children: number(13)? + number(14)?,
            started: number(19)?,
        })
    }
}

fn length(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 1000 / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read_whatever_the_name() {
        let line = "42 (post) gres) S 7 42 42 0 -1 4194560 9 8 7 6 110 11 3 4 20 0 1 0 123456 1 2 3";

        let stat = Stat::parse(line).unwrap();

        let expected =
            Stat { name: "post) gres".into(), parent: 7, used: 121, children: 7, started: 123_456 };
        assert_eq!(stat, expected);
        assert_eq!(Stat::parse("42 (x) S 7"), None);
    }

    #[test]
    fn a_process_that_is_no_backend_is_not_taken_for_one() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();

        assert!(Server::find(std::process::id(), now).is_none());
        assert!(Server::find(0, now).is_none());
    }
}

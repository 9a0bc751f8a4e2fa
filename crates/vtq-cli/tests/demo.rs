//! `vtq demo`, run as a newcomer runs it.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A temporary directory of its own, in which nothing may remain.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        // Not under a longer path: a socket's is short.
        let path = PathBuf::from(format!("/tmp/vtq-demo-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn entries(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    fn demo(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vtq"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        command.env_remove("DATABASE_URL").env_remove("RUST_LOG").env("TMPDIR", &self.0);
        command.arg("demo").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn code(output: &Output) -> Option<i32> {
    if output.status.code() != Some(0) {
        eprintln!("{}", text(&output.stderr));
    }
    output.status.code()
}

fn sum<'a>(counts: impl Iterator<Item = &'a Value>) -> u64 {
    counts.map(|count| count.as_u64().unwrap()).sum()
}

/// Reads lines until one holds the words.
fn wait_for(child: &mut Child, words: &str) {
    let lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains(words)), "`{words}` was not said");
}

fn interrupt(child: &Child) {
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
}

#[test]
fn the_numbers_add_up_and_nothing_remains() {
    let temporary = Temporary::new();

    let output = temporary.demo(&["--json"]).output().unwrap();

    assert_eq!(code(&output), Some(0));
    let story: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |key: &str| story[key].as_u64().unwrap();
    assert_eq!(count("sent"), 77);
    assert_eq!(count("handled") + count("dead"), 77, "{story:#}");
    assert_eq!((count("left"), count("different")), (0, 77), "{story:#}");
    let outcomes = story["outcomes"].as_array().unwrap();
    assert_eq!(sum(outcomes.iter().map(|outcome| &outcome["messages"])), 77, "{story:#}");
    let reasons = story["dead_by_reason"].as_object().unwrap();
    assert_eq!(sum(reasons.values()), count("dead"), "{story:#}");
    for reason in ["attempts_exhausted", "permanent_failure", "worker_died"] {
        assert!(reasons.contains_key(reason), "no message is dead for {reason}: {story:#}");
    }
    let deliveries = story["deliveries"].as_array().unwrap();
    for outcome in ["done", "failed", "deferred", "permanent", "abandoned"] {
        assert!(deliveries.iter().any(|row| row["outcome"] == outcome), "none {outcome}: {story:#}");
    }
    assert!(count("workers_died") >= 5, "{story:#}");
    assert!(story["history"]["deliveries"].as_array().unwrap().len() >= 2, "{story:#}");
    assert_eq!(story["dead_letter"]["block"]["reason"], "attempts_exhausted", "{story:#}");
    assert_eq!(temporary.entries(), Vec::<PathBuf>::new());
}

#[test]
fn a_file_of_ones_own_is_told_in_plain_text_of_80_columns() {
    let temporary = Temporary::new();
    let file = temporary.0.join("own.ndjson");
    fs::write(&file, "{\"n\":1}\n\n[2]\n\"three\"\n4\nnull\n").unwrap();

    let output = temporary.demo(&["--file", file.to_str().unwrap()]).output().unwrap();

    assert_eq!(code(&output), Some(0));
    let (story, remarks) = (text(&output.stdout), text(&output.stderr));
    assert!(story.contains("What became of the 5 messages"), "{story}");
    assert!(story.contains("every message ended, and ended once"), "{story}");
    for line in story.lines().chain(remarks.lines()) {
        assert!(line.chars().count() <= 80, "longer than 80 columns: {line}");
        assert!(!line.contains('\x1b'), "coloured: {line}");
    }
}

#[test]
fn a_bad_line_is_named_before_anything_is_started() {
    let temporary = Temporary::new();
    let file = temporary.0.join("bad.ndjson");
    fs::write(&file, "{}\n{\"a\":\n").unwrap();

    let output = temporary.demo(&["--file", file.to_str().unwrap()]).output().unwrap();

    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("line 2"), "{}", text(&output.stderr));
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    for words in ["messages sent", "worker 2 takes over"] {
        let temporary = Temporary::new();
        let mut child = temporary.demo(&[]).spawn().unwrap();
        wait_for(&mut child, words);

        interrupt(&child);

        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(temporary.entries(), Vec::<PathBuf>::new());
    }
}

#[test]
fn ctrl_c_while_postgres_starts_leaves_nothing_behind() {
    let temporary = Temporary::new();
    let mut child = temporary.demo(&[]).spawn().unwrap();
    let started = Instant::now();
    while temporary.entries().is_empty() && started.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(20));
    }

    interrupt(&child);

    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(temporary.entries(), Vec::<PathBuf>::new());
}

#[test]
fn kept_database_stays_until_ctrl_c() {
    let temporary = Temporary::new();
    let mut child = temporary.demo(&["--keep"]).spawn().unwrap();
    wait_for(&mut child, "stays up until Ctrl-C");
    assert_eq!(temporary.entries().len(), 1);

    interrupt(&child);

    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(temporary.entries(), Vec::<PathBuf>::new());
}

#[test]
fn a_queue_with_messages_is_not_dropped_unasked() {
    let temporary = Temporary::new();
    let cluster = vtq_dev::Cluster::builder().start().unwrap();
    let file = temporary.0.join("two.ndjson");
    fs::write(&file, "1\n2\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = temporary.demo(&["--file", file.to_str().unwrap()]);
        command.args(args).env("DATABASE_URL", cluster.url()).output().unwrap()
    };

    let first = run(&[]);
    let second = run(&[]);
    let third = run(&["--yes"]);

    assert_eq!(code(&first), Some(0));
    assert_eq!(second.status.code(), Some(2));
    let refusal = text(&second.stderr);
    assert!(refusal.contains("queue `demo`") && refusal.contains("vtq demo --yes"), "{refusal}");
    assert_eq!(code(&third), Some(0));
    for output in [&first, &second, &third] {
        let password = cluster.url().split([':', '@']).nth(2).unwrap().to_owned();
        assert!(!text(&output.stderr).contains(&password) && !text(&output.stdout).contains(&password));
    }
}

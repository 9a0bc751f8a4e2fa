//! A database with queues, and workers on it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tokio_postgres::Client;
use vtq_tests::{TestDb, wait_until};

/// Far more than anything here takes, on a machine that does much else.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A database with the queue `q`, and a folder for what commands write.
pub(crate) struct World {
    pub(crate) db: TestDb,
    pub(crate) client: Client,
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_options("{}").await
    }

    /// With options of the queue, as JSON.
    pub(crate) async fn with_options(options: &str) -> Self {
        let db = TestDb::new().await;
        let client = db.client().await;
        let create = format!("SELECT vtq.create_queue('q', '{options}')");
        client.batch_execute(&create).await.unwrap();
        Self { db, client, folder: TempDir::new().unwrap() }
    }

    pub(crate) async fn send(&self, message: &str) -> i64 {
        self.send_with(message, None).await
    }

    pub(crate) async fn send_with(&self, message: &str, headers: Option<&str>) -> i64 {
        let sql = "SELECT vtq.send('q', $1::text::jsonb, $2::text::jsonb)";
        self.client.query_one(sql, &[&message, &headers]).await.unwrap().get(0)
    }

    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.client.query_one(&format!("SELECT count(*) FROM {sql}"), &[]).await.unwrap().get(0)
    }

    /// The message's failed deliveries, as JSON objects.
    pub(crate) async fn attempts(&self, id: i64) -> Vec<Value> {
        let sql = "SELECT to_jsonb(a) FROM vtq.q_attempts AS a WHERE msg_id = $1 ORDER BY read_ct";
        self.client.query(sql, &[&id]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// The only one of them.
    pub(crate) async fn attempt(&self, id: i64) -> Value {
        let mut attempts = self.attempts(id).await;
        assert_eq!(attempts.len(), 1, "{attempts:#?}");
        attempts.remove(0)
    }

    /// Where a message is: `done`, `dead`, the seconds until it is due, or `gone`.
    pub(crate) async fn fate(&self, id: i64) -> String {
        let sql = "SELECT coalesce(
            (SELECT 'done' FROM vtq.q_archive WHERE msg_id = $1),
            (SELECT 'dead' FROM vtq.q_dlq WHERE msg_id = $1),
            (SELECT ceil(extract(epoch FROM vt - clock_timestamp()))::text FROM vtq.q WHERE msg_id = $1),
            'gone')";
        self.client.query_one(sql, &[&id]).await.unwrap().get(0)
    }

    /// Checks that a message is due in `from` to `to` seconds.
    pub(crate) async fn assert_due(&self, id: i64, from: i64, to: i64) {
        let fate = self.fate(id).await;
        let seconds: i64 = fate.parse().unwrap_or_else(|_| panic!("message {id} is {fate}"));
        assert!((from..=to).contains(&seconds), "message {id} is due in {seconds} s");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The words of a file that commands write to; none as long as it is not there.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }

    pub(crate) async fn wait_for_words(&self, name: &str, number: usize) -> Vec<String> {
        wait_until(LIMIT, &format!("{number} words in {name}"), async || self.words(name).len() >= number)
            .await;
        self.words(name)
    }

    /// The command, without what the developer's shell points at; commands run in the folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vtq"));
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let is_ours = text.starts_with("PG") || text.starts_with("VTQ_") || text.ends_with("_PROXY");
            if is_ours || text.ends_with("_proxy") || text == "RUST_LOG" {
                command.env_remove(&name);
            }
        }
        command.env("DATABASE_URL", self.db.url()).current_dir(self.folder.path()).arg("start").args(args);
        command
    }

    /// Starts a worker on the queue.
    pub(crate) fn start(&self, args: &[&str]) -> Worker {
        Worker::start(&mut self.command(&[&["--queues", "q: 2"], args].concat()))
    }

    /// Runs a worker until nothing is ready.
    pub(crate) async fn once(&self, args: &[&str]) -> Ended {
        self.start(&[&["--once"], args].concat()).ended().await
    }
}

/// A worker that runs; killed when dropped.
pub(crate) struct Worker {
    process: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<()>,
    lines: Arc<Mutex<Vec<String>>>,
}

/// How a worker ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Worker {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (mut out, err) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        let stdout = thread::spawn(move || {
            let mut text = Vec::new();
            out.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        let lines = Arc::new(Mutex::new(Vec::new()));
        let shared = lines.clone();
        let stderr = thread::spawn(move || {
            for line in BufReader::new(err).split(b'\n') {
                shared.lock().unwrap().push(String::from_utf8_lossy(&line.unwrap()).into_owned());
            }
        });
        Self { process, stdout, stderr, lines }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for a line on stderr that holds `words`.
    pub(crate) async fn says(&self, words: &str) {
        let says = || self.lines.lock().unwrap().iter().any(|line| line.contains(words));
        let started = Instant::now();
        while !says() {
            assert!(started.elapsed() < LIMIT, "no {words:?} in: {:#?}", self.lines.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn ended(mut self) -> Ended {
        let mut status: Option<ExitStatus> = None;
        wait_until(LIMIT, "the worker's end", async || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        })
        .await;
        // The streams end with the worker, for all that it has started has ended too.
        let all_read = async || self.stdout.is_finished() && self.stderr.is_finished();
        wait_until(LIMIT, "the end of the worker's output", all_read).await;
        let stdout = std::mem::replace(&mut self.stdout, thread::spawn(String::new)).join().unwrap();
        let stderr = self.lines.lock().unwrap().join("\n");
        Ended { code: status.unwrap().code(), stdout, stderr }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until a process is gone; one that only waits to be reaped by whoever adopted it counts as gone.
pub(crate) async fn wait_for_end(pid: &str) {
    let is_gone = async || match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => true,
    };
    wait_until(LIMIT, &format!("the end of process {pid}"), is_gone).await;
}

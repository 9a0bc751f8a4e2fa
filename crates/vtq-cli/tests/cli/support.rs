//! Running the binary, and saying what it did when that is not what was expected.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;
use vtq_tests::TestDb;

/// A database with vtq installed, and the binary pointed at it.
pub(crate) struct Cli {
    pub(crate) db: TestDb,
}

/// What a run of the binary did.
pub(crate) struct Ran {
    line: String,
    output: Output,
}

impl Cli {
    /// Makes a database with these queues in it, each with the default options.
    pub(crate) async fn with_queues(queues: &[&str]) -> Self {
        let cli = Self { db: TestDb::new().await };
        for queue in queues {
            cli.run(&["queue", "create", queue]).done();
        }
        cli
    }

    /// Makes a database where vtq is not installed.
    pub(crate) async fn empty() -> Self {
        Self { db: TestDb::empty().await }
    }

    /// Runs the binary with nothing on standard input.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_on(args, b"")
    }

    /// Runs the binary with this on standard input.
    pub(crate) fn run_on(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(args);
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // It may refuse before it has read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran { line: format!("vtq {}", args.join(" ")), output }
    }

    /// The binary with these arguments, pointed at this database.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = bare(args);
        command.env("DATABASE_URL", self.db.url());
        command
    }

    /// Answers one value, as text; nothing for null or no row.
    pub(crate) async fn sql(&self, sql: &str) -> String {
        let answer =
            self.db.client().await.simple_query(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        let row = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        row.unwrap_or_default().to_owned()
    }

    /// Sends, reads and fails for good: the dead letters 1 to `number` of a queue.
    pub(crate) async fn bury(&self, queue: &str, number: u32) {
        self.sql(&format!(
            "SELECT count(vtq.dead_letter('{queue}', r.msg_id, r.read_ct, 'permanent_failure',
                 '{{\"class\": \"Broken\", \"message\": \"no way\"}}'))
             FROM (SELECT count(s) FROM generate_series(1, {number}) AS n,
                 LATERAL vtq.send('{queue}', to_jsonb(n)) AS s) AS sent,
                 LATERAL vtq.read('{queue}', '10 min', {number}) AS r
             WHERE sent.count > 0"
        ))
        .await;
    }
}

/// The binary with no database of ours in its environment.
pub(crate) fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vtq"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env_remove("DATABASE_URL").env_remove("RUST_LOG").env("HOME", "/nonexistent").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a prepared command.
pub(crate) fn run(mut command: Command) -> Ran {
    let line = format!("{command:?}");
    Ran { line, output: command.stdin(Stdio::null()).output().unwrap() }
}

impl Ran {
    /// It did what it was asked, and complained of nothing. Returns what it printed.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        self.expect(0);
        if !self.output.stderr.is_empty() {
            self.fail("nothing on standard error");
        }
        self.stdout()
    }

    /// It found nothing: returns its remark, without the name in front.
    #[track_caller]
    pub(crate) fn nothing(self) -> String {
        self.expect(1);
        self.remark()
    }

    /// It failed and printed one line and no result. Returns the line, without the name in front.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        self.expect(2);
        if !self.output.stdout.is_empty() {
            self.fail("nothing on standard output");
        }
        let remark = self.remark();
        if remark.is_empty() || remark.contains('\n') {
            self.fail("one line on standard error");
        }
        remark
    }

    /// What it printed, as JSON; asserts nothing about its exit.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout()).unwrap_or_else(|_| self.fail("JSON on standard output"))
    }

    #[track_caller]
    pub(crate) fn expect(&self, code: i32) {
        if self.output.status.code() != Some(code) {
            self.fail(&format!("exit code {code}"));
        }
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).trim_end().to_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).trim_end().to_owned()
    }

    #[track_caller]
    fn remark(&self) -> String {
        let stderr = self.stderr();
        match stderr.strip_prefix("vtq: ") {
            Some(remark) => remark.to_owned(),
            None if stderr.is_empty() => stderr,
            None => self.fail("a line that begins with `vtq: `"),
        }
    }

    #[track_caller]
    fn fail(&self, expected: &str) -> ! {
        let mut text = String::new();
        let _ = writeln!(text, "\n==== command\n{}\n==== expected\n{expected}", self.line);
        let _ = writeln!(text, "==== {}\n==== stdout\n{}", self.output.status, self.stdout());
        let _ = writeln!(text, "==== stderr\n{}\n====", self.stderr());
        panic!("{text}");
    }
}

//! A worker in a process of its own, to be killed and stopped.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vtq::{CancelCause, Capsule, Context, Lease, Message, Worker};

use crate::clock::now;
use crate::harness::{Stage, options};
use crate::runs::{Runs, leased_until};
use crate::work::perform;

/// What the process is told: its database, and how many handlers it runs at once.
const URL: &str = "VTQ_CHAOS_CHILD_URL";
const SLOTS: &str = "VTQ_CHAOS_CHILD_SLOTS";

/// Comes before what the process says: the rest of its output is the test harness's.
const MARK: &str = "> ";

/// The process, seen by the test.
pub(crate) struct Child {
    pub(crate) number: usize,
    process: std::process::Child,
    reader: JoinHandle<Told>,
}

/// What it said beside its runs.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) cancelled: usize,
    pub(crate) lost: u64,
    pub(crate) late: u64,
}

impl Child {
    /// Starts this program once more, for nothing but the worker at the end of this file.
    pub(crate) fn start(stage: &Stage) -> Self {
        let number = stage.next_number();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "child::worker", "--nocapture"])
            .env(URL, stage.cluster.url())
            .env(SLOTS, stage.concurrency.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = process.stdout.take().unwrap();
        let runs = stage.runs.clone();
        let reader = std::thread::spawn(move || read(number, output, &runs));
        Self { number, process, reader }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).unwrap();
    }

    /// Kills it, as the kernel does when memory runs out. Answers how many runs that cut short.
    pub(crate) fn kill(mut self, runs: &Runs) -> usize {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        // What it said until its death is in the pipe.
        self.reader.join().unwrap();
        runs.died(self.number)
    }

    /// Stops it as a shutdown does.
    pub(crate) fn stop(mut self) -> Told {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success(), "the worker ends well");
        self.reader.join().unwrap()
    }
}

fn read(number: usize, output: ChildStdout, runs: &Runs) -> Told {
    let mut told = Told::default();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let Some((_, line)) = line.split_once(MARK) else { continue };
        let words: Vec<&str> = line.split(' ').collect();
        let number_at = |place: usize| words[place].parse::<u64>().unwrap();
        let lease = || Lease { id: number_at(1).cast_signed(), read_ct: words[2].parse().unwrap() };
        match words[0] {
            "begin" => runs.begun(number, lease(), number_at(3), number_at(4)),
            "end" => runs.ended(number, lease(), number_at(3)),
            "cancelled" => told.cancelled += 1,
            "stopped" => (told.lost, told.late) = (number_at(1), number_at(2)),
            _ => {}
        }
    }
    told
}

/// Ends a run also when its future is dropped.
struct Ends(Lease);

impl Drop for Ends {
    fn drop(&mut self) {
        say(&format!("end {} {} {}", self.0.id, self.0.read_ct, now()));
    }
}

/// Says it in one piece, so that death does not cut it short. Nobody listens any more when the test is over.
fn say(line: &str) {
    let _ = std::io::stdout().write_all(format!("{MARK}{line}\n").as_bytes());
}

async fn handle(message: Message, context: Context) -> vtq::Outcome {
    let lease = message.lease;
    say(&format!("begin {} {} {} {}", lease.id, lease.read_ct, now(), leased_until(&message)));
    let _ends = Ends(lease);
    let outcome = perform(&message, &context).await;
    if context.cancelled() == Some(CancelCause::LeaseLost) {
        say("cancelled");
    }
    outcome
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "is no test, but the process that others start, kill and stop"]
async fn worker() {
    let url = std::env::var(URL).expect("it is started by another test only");
    let slots = std::env::var(SLOTS).unwrap().parse().unwrap();
    let vtq = options(&url).lazy().unwrap();
    let capsule = Capsule::new(["q"], vtq::handler_fn(handle)).concurrency(slots);
    let worker = Worker::builder(&vtq).capsule(capsule).build().unwrap();
    let (owned, orphaned) = tokio::sync::oneshot::channel::<()>();
    // Its input ends when it is to stop, and at the latest when the test's process does.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        drop(owned);
    });
    let shutdown = async {
        let _ = orphaned.await;
    };
    let stopped = worker.run(shutdown).await.unwrap();
    say(&format!("stopped {} {}", stopped.lost, stopped.late));
}

//! Worker processes are killed, and stopped for longer than their leases last.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vtq::Lease;
use vtq_tests::wait_until;

use crate::harness::{RECOVERY, Stage, short_lease};
use crate::producer::Load;
use crate::runs::Runs;
use crate::verdict::Doubles;

/// A worker in a process of its own: see `bin/worker.rs`.
struct Child {
    number: usize,
    process: std::process::Child,
    reader: JoinHandle<Told>,
}

/// What it said beside its runs.
#[derive(Debug, Default)]
struct Told {
    cancelled: usize,
    lost: u64,
    late: u64,
}

impl Child {
    fn start(stage: &Stage) -> Self {
        let number = stage.next_number();
        let mut process = Command::new(env!("CARGO_BIN_EXE_chaos-worker"))
            .args([stage.cluster.url(), stage.concurrency.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = process.stdout.take().unwrap();
        let runs = stage.runs.clone();
        let reader = std::thread::spawn(move || read(number, output, &runs));
        Self { number, process, reader }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).unwrap();
    }

    /// Kills it, as the kernel does when memory runs out.
    fn kill(mut self, runs: &Runs) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        // What it said until its death is in the pipe.
        self.reader.join().unwrap();
        runs.died(self.number);
    }

    /// Stops it as a shutdown does.
    fn stop(mut self) -> Told {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success(), "the worker ends well");
        self.reader.join().unwrap()
    }
}

fn read(number: usize, output: ChildStdout, runs: &Runs) -> Told {
    let mut told = Told::default();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let number_at = |place: usize| words[place].parse::<u64>().unwrap();
        let lease = || Lease { id: number_at(1).cast_signed(), read_ct: words[2].parse().unwrap() };
        match words[0] {
            "begin" => runs.begun(number, lease(), number_at(3)),
            "end" => runs.ended(number, lease(), number_at(3)),
            "cancelled" => told.cancelled += 1,
            "stopped" => (told.lost, told.late) = (number_at(1), number_at(2)),
            // A last line that death cut short.
            _ => {}
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_workers_lose_nothing() {
    let mut stage = Stage::new("workers killed", short_lease(2)).await;
    let mut children = [Child::start(&stage), Child::start(&stage)];
    let producer = stage.produce(Load::default());
    stage.warm(50).await;

    for _ in 0..10 {
        stage.dice.wait(200, 900).await;
        let place = stage.dice.below(2) as usize;
        let child = std::mem::replace(&mut children[place], Child::start(&stage));
        child.kill(&stage.runs);
    }

    let client = stage.client().await;
    let sent = producer.finish().await;
    stage.settled(&client).await;
    for child in children {
        child.stop();
    }
    stage.notes.push("10 kills".into());
    stage.verify_sent(sent, Doubles::Never).await;
}

/// Its machine slept, or swapped for too long: what it held is with somebody else when it wakes up.
#[tokio::test(flavor = "multi_thread")]
async fn worker_that_slept_gives_up_what_it_lost() {
    let mut stage = Stage::new("worker stopped (SIGSTOP)", short_lease(1)).await;
    // Few: what a worker leaves behind may have killed it, and runs alone.
    stage.concurrency = 4;
    let child = Child::start(&stage);
    let producer = stage.produce(Load { least: 20, takes_ms: (3500, 500), pause_ms: 50 });
    let has_begun = async || stage.runs.begun_since(child.number, 0) == 4;
    wait_until(RECOVERY, "the process to be busy", has_begun).await;
    let url = stage.cluster.url();

    child.signal(Signal::SIGSTOP);
    stage.work(&url);
    tokio::time::sleep(Duration::from_secs(2)).await;
    child.signal(Signal::SIGCONT);

    let client = stage.client().await;
    let sent = producer.finish().await;
    stage.settled(&client).await;
    let told = child.stop();
    stage.notes.push(format!("the stopped one: {told:?}"));
    assert!(told.lost >= 4, "it learns that its leases are gone: {told:?}");
    assert!(told.cancelled > 0, "and its handlers do: {told:?}");
    stage.verify_sent(sent, Doubles::Explained).await;
}

//! A consumer in a process of its own: the benchmark starts itself.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{self, ChildStdin, Command};

use crate::peer::{Consume, OnAck, Peer};
use crate::pump::Pump;
use crate::stage::{Shape, Stage};
use crate::tally::{Handler, Tally};

/// How often a child says how many messages it has handled. Each time wakes two processes, so many children must not do
/// it often; the producers see what waits this much later.
const REPORT: Duration = Duration::from_millis(25);

const URL: &str = "VTQ_BENCH_URL";

/// What a child is told.
#[derive(Debug, Args)]
pub(crate) struct ChildArgs {
    #[arg(long, value_enum)]
    peer: Peer,
    /// Not an argument: every user of the machine can see those, and it holds a password
    #[arg(env = URL, hide_env_values = true)]
    url: String,
    #[arg(long)]
    pollers: usize,
    #[arg(long)]
    batch: usize,
    #[arg(long)]
    concurrency: usize,
    /// How long a handler takes
    #[arg(long)]
    handler_us: u64,
}

/// A child that runs. It ends when its standard input is closed, so also when this process does.
#[derive(Debug)]
pub(crate) struct Child {
    process: process::Child,
    input: ChildStdin,
}

impl Child {
    /// Starts one. What it handles is counted in the stage's tally.
    pub(crate) fn start(stage: &mut Stage<'_>, shape: Shape, handler: Duration) -> Result<Self> {
        use clap::ValueEnum;
        let peer = stage.peer.to_possible_value().context("this peer has no name")?;
        let numbers = [
            ("--pollers", shape.pollers.to_string()),
            ("--batch", shape.batch.to_string()),
            ("--concurrency", shape.concurrency.to_string()),
            ("--handler-us", handler.as_micros().to_string()),
        ];
        let mut process = Command::new(std::env::current_exe().context("cannot find this program")?)
            .args(["child", "--peer", peer.get_name()])
            .env(URL, &stage.url)
            .args(numbers.iter().flat_map(|(name, value)| [*name, value.as_str()]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a consumer's process")?;
        let input = process.stdin.take().context("a consumer's process has no standard input")?;
        let output = process.stdout.take().context("a consumer's process has no standard output")?;
        let (tally, stop) = (stage.tally.clone(), stage.pump.stop.clone());
        stage.pump.add(async move {
            let mut lines = BufReader::new(output).lines();
            let mut counted = 0;
            while let Some(line) = lines.next_line().await? {
                let handled: u64 = line.parse().context("a consumer's process says what is no number")?;
                tally.add(handled - counted);
                counted = handled;
            }
            // It has ended: an error, unless it was told to.
            stop.cancelled().await;
            Ok(())
        });
        Ok(Self { process, input })
    }

    /// How much memory it holds, in MB: its resident set.
    pub(crate) fn memory_mb(&self) -> Result<f64> {
        let pid = self.process.id().context("a consumer's process has ended")?;
        let status =
            std::fs::read_to_string(format!("/proc/{pid}/status")).context("cannot ask for its memory")?;
        let kib: f64 = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|number| number.parse().ok())
            .context("the system does not say how much memory a process holds")?;
        Ok(kib * 1024.0 / 1e6)
    }

    /// Ends it; an error if it failed.
    pub(crate) async fn end(mut self) -> Result<()> {
        drop(self.input);
        let status = self.process.wait().await.context("cannot wait for a consumer's process")?;
        ensure!(status.success(), "a consumer's process failed: {status}");
        Ok(())
    }
}

/// What a child does: consumes, and writes how many messages it has handled; ends when standard input does.
pub(crate) async fn run(args: &ChildArgs) -> Result<()> {
    let tally = Arc::new(Tally::default());
    let mut pump = Pump::default();
    let consume = Consume {
        url: args.url.clone(),
        shape: Shape {
            pollers: args.pollers,
            batch: args.batch,
            concurrency: args.concurrency,
            is_patient: false,
        },
        on_ack: OnAck::Delete,
        handler: Handler::new(tally.clone(), Duration::from_micros(args.handler_us)),
        stop: pump.stop.clone(),
    };
    pump.consume(args.peer, consume);
    let mut input = tokio::io::stdin();
    let mut output = tokio::io::stdout();
    let mut byte = [0];
    loop {
        tokio::select! {
            read = input.read(&mut byte) => {
                if read.context("cannot read from standard input")? == 0 {
                    break;
                }
            }
            worked = pump.work(REPORT) => {
                worked?;
                output.write_all(format!("{}\n", tally.handled()).as_bytes()).await?;
                output.flush().await?;
            }
        }
    }
    pump.end().await
}

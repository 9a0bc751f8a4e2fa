//! One run: the clock, the senders, the workers, and in which order they start and end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use vtq::{Exact, Metrics, Queue, Vtq};

use super::consumer::Consumer;
use super::live::Live;
use super::payload::Writer;
use super::producer::{Producer, Rate};
use super::report::{Ending, Report, ServerFacts};
use super::sampler::Sampler;
use super::snapshot::Snapshot;
use super::tally::{Tally, read};
use crate::args::Global;
use crate::args::bench::BenchArgs;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// How often it is looked whether all is handled.
const LOOK_EVERY: Duration = Duration::from_millis(20);

const FACTS: &str = "\
SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')";

/// A run that is ready to start.
#[derive(Debug)]
pub(super) struct Run {
    /// For senders and workers, whose connections are known by their name.
    vtq: Vtq,
    /// For everything else.
    queue: Queue,
    mark: Arc<str>,
    tally: Arc<Tally>,
    snapshot: Option<Snapshot>,
    server: ServerFacts,
}

/// Senders or workers: tasks that end when they are told to, and before that only by an error.
struct Crew {
    tasks: JoinSet<anyhow::Result<()>>,
    stop: watch::Sender<bool>,
}

impl Run {
    /// Opens the connections that measure, and takes the snapshot if one is to be held.
    pub(super) async fn prepare(
        global: &Global,
        args: &BenchArgs,
        queue: &Queue,
        mark: &str,
    ) -> anyhow::Result<(Self, Sampler)> {
        let application = format!("vtq bench {mark}");
        let pool_size = usize::from(args.producers).max(1);
        let vtq = global.options()?.application_name(&application).pool_size(pool_size).lazy()?;
        let observer = global.options()?.application_name("vtq bench").lazy()?;
        let tally = Arc::new(Tally::new());
        let sampler = Sampler::open(&observer, queue.name(), &application, tally.clone()).await?;
        let snapshot = match args.hold_snapshot {
            true => Some(Snapshot::hold(&observer).await?),
            false => None,
        };
        let server = server(&observer).await?;
        Ok((Self { vtq, queue: queue.clone(), mark: mark.into(), tally, snapshot, server }, sampler))
    }

    /// Runs it to its end, or until the user has had enough.
    pub(super) async fn measure(
        self,
        mut sampler: Sampler,
        args: &BenchArgs,
        writer: &Writer,
        output: Output,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Report> {
        let mut workers = Crew::new();
        // Workers that have connected would empty a backlog before the clock starts.
        if args.backlog == 0 {
            self.start_workers(args, &mut workers, interrupt).await?;
        }
        let began = sampler.begin().await;
        let live = Live::start(output, args.limit(), args.backlog);
        let (stop_sampling, sampling) = watch::channel(false);
        let sampler = tokio::spawn(sampler.run(sampling, live));
        let producers = self.start_producers(args, writer)?;
        if args.backlog > 0 {
            self.start_workers(args, &mut workers, interrupt).await?;
        }
        let (sending, whole) = self.play(args, began, producers, &mut workers, interrupt).await?;
        // While the connections of senders and workers are there to be looked at.
        let _ = stop_sampling.send(true);
        let seen = sampler.await.context("the sampler came to an end")?;
        workers.stop().await?;

        let ending = self.ending(args, began, (sending, whole), interrupt).await?;
        Ok(Report::new(self.queue.name().as_str(), args, &self.tally, seen, ending))
    }

    /// Lets them work. Answers how long was sent, and how long it took with what had to be handled afterwards.
    async fn play(
        &self,
        args: &BenchArgs,
        began: Instant,
        mut producers: Crew,
        workers: &mut Crew,
        interrupt: &Interrupt,
    ) -> anyhow::Result<(Duration, Duration)> {
        let limit = args.limit().map(|limit| limit.saturating_sub(began.elapsed()));
        tokio::select! {
            () = sleep(limit.unwrap_or_default()), if limit.is_some() => {}
            () = self.all_handled(args.backlog), if args.producers == 0 => {}
            () = interrupt.requested(1) => {}
            ended = producers.ended() => return Err(ended),
            ended = workers.ended() => return Err(ended),
        }
        producers.stop().await?;
        let sending = began.elapsed();
        if args.workers > 0 && args.producers > 0 {
            tokio::select! {
                () = self.all_handled(args.backlog) => {}
                () = sleep(args.drain_timeout) => {}
                () = interrupt.requested(1) => {}
                ended = workers.ended() => return Err(ended),
            }
        }
        Ok((sending, began.elapsed()))
    }

    /// Waits until as many messages have ended as were sent and put in before.
    async fn all_handled(&self, backlog: u64) {
        let tally = &self.tally;
        while read(&tally.handled) + read(&tally.unsure) < read(&tally.sent) + backlog {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Asks the database what is left.
    async fn ending(
        &self,
        args: &BenchArgs,
        began: Instant,
        (sending, whole): (Duration, Duration),
        interrupt: &Interrupt,
    ) -> anyhow::Result<Ending> {
        let last = self.tally.last_handled().map_or(Duration::ZERO, |at| at.saturating_duration_since(began));
        let metrics = self.queue.metrics(Exact::Yes).await?;
        let options = self.queue.options().await?;
        let left = left(&metrics);
        Ok(Ending {
            interrupted: interrupt.is_requested(),
            sending,
            elapsed: match left > 0 && args.workers > 0 {
                true => whole,
                false if args.producers > 0 => sending.max(last),
                false => last,
            },
            left,
            delayed: metrics.delayed.unwrap_or_default(),
            dead: metrics.dead.unwrap_or_default(),
            on_ack: options.get("on_ack").and_then(|on_ack| on_ack.as_str()).unwrap_or_default().to_owned(),
            snapshot_held: self.snapshot.as_ref().map(Snapshot::is_held),
            server: self.server.clone(),
        })
    }

    /// Starts the workers, and waits until all have begun or the user has had enough.
    async fn start_workers(
        &self,
        args: &BenchArgs,
        workers: &mut Crew,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let (started, mut starts) = mpsc::unbounded_channel();
        let consumer = Consumer {
            vtq: self.vtq.clone(),
            queue: self.queue.name().clone(),
            run: self.mark.clone(),
            tally: self.tally.clone(),
            concurrency: args.concurrency.into(),
            handler_time: args.handler_time,
        };
        for _ in 0..args.workers {
            workers.tasks.spawn(consumer.clone().work(workers.stop.subscribe(), started.clone()));
        }
        for _ in 0..args.workers {
            tokio::select! {
                _ = starts.recv() => {}
                () = interrupt.requested(1) => return Ok(()),
                ended = workers.ended() => return Err(ended),
            }
        }
        Ok(())
    }

    fn start_producers(&self, args: &BenchArgs, writer: &Writer) -> anyhow::Result<Crew> {
        let mut producers = Crew::new();
        let number = f64::from(args.producers);
        for place in 0..args.producers {
            let rate =
                args.rate.map(|rate| Rate { per_second: rate / number, phase: f64::from(place) / number });
            let producer = Producer {
                queue: self.vtq.queue(self.queue.name())?,
                writer: writer.clone(),
                tally: self.tally.clone(),
                batch: args.batch as usize,
                rate,
            };
            producers.tasks.spawn(producer.run(producers.stop.subscribe()));
        }
        Ok(producers)
    }
}

impl Crew {
    fn new() -> Self {
        Self { tasks: JoinSet::new(), stop: watch::channel(false).0 }
    }

    /// Waits until one ends that should not. Never, where there is none.
    async fn ended(&mut self) -> anyhow::Error {
        match self.tasks.join_next().await {
            None => std::future::pending().await,
            Some(Ok(Err(error))) => error,
            Some(Ok(Ok(()))) => anyhow::anyhow!("a part of the bench ended before its time"),
            Some(Err(error)) => anyhow::Error::new(error).context("a part of the bench failed"),
        }
    }

    /// Tells all to stop, and waits until they have.
    async fn stop(mut self) -> anyhow::Result<()> {
        let _ = self.stop.send(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended.context("a part of the bench failed")??;
        }
        Ok(())
    }
}

async fn server(vtq: &Vtq) -> anyhow::Result<ServerFacts> {
    let (client, _notifications) = vtq.dedicated().await?.spawn();
    let rows = client.query_typed(FACTS, &[]).await.context("ask for the server's settings")?;
    let Some(row) = rows.first() else { bail!("the server does not say what it is") };
    Ok(ServerFacts { version: row.get(0), fsync: row.get(1), synchronous_commit: row.get(2) })
}

/// The live messages but for the delayed.
fn left(metrics: &Metrics) -> u64 {
    let states = [metrics.ready, metrics.in_flight, metrics.retrying, metrics.exhausted, metrics.expired];
    states.into_iter().flatten().sum()
}

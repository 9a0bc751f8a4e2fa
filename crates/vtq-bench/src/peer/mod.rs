//! The queues that are measured. A workload knows no more of them than this.

#[cfg(not(feature = "peers"))]
mod absent;
#[cfg(feature = "peers")]
mod awa;
mod bare;
#[cfg(feature = "peers")]
mod graphile_worker;
mod pgmq;
#[cfg(feature = "peers")]
mod sqlxmq;
mod vtq;

#[cfg(not(feature = "peers"))]
use self::{absent as awa, absent as graphile_worker, absent as sqlxmq};

pub(crate) use self::pgmq::Sql as PgmqSql;
pub(crate) use self::vtq::Sql as VtqSql;

use anyhow::Result;
use clap::ValueEnum;
use tokio_util::sync::CancellationToken;

use crate::backlog::Backlog;
use crate::body::Body;
use crate::client_loop::{self, Sender};
use crate::stage::Shape;
use crate::tally::Handler;

/// The queue that every workload uses.
pub(crate) const QUEUE: &str = "bench";

/// Connections in the pools of the peers that have one; awa's own benchmark has as many.
#[cfg(feature = "peers")]
const POOL: u32 = 20;

/// A queue, with a way to drive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Peer {
    /// vtq's SQL functions, called in the loop that PGMQ is called in
    VtqSql,
    /// vtq's `Worker`
    VtqWorker,
    /// PGMQ's SQL functions
    Pgmq,
    /// awa's client
    Awa,
    /// graphile_worker's worker
    GraphileWorker,
    /// sqlxmq's job runner
    Sqlxmq,
    /// A bare DELETE of what is next, without any visibility timeout: a ceiling
    Bare,
}

/// What becomes of a message that was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnAck {
    Delete,
    Archive,
}

/// How a consumer works.
#[derive(Debug, Clone)]
pub(crate) struct Consume {
    pub(crate) url: String,
    pub(crate) shape: Shape,
    pub(crate) on_ack: OnAck,
    pub(crate) handler: Handler,
    pub(crate) stop: CancellationToken,
}

impl Peer {
    pub(crate) const ALL: [Self; 7] = [
        Self::VtqSql,
        Self::VtqWorker,
        Self::Pgmq,
        Self::Awa,
        Self::GraphileWorker,
        Self::Sqlxmq,
        Self::Bare,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::VtqSql => "vtq, SQL",
            Self::VtqWorker => "vtq, worker",
            Self::Pgmq => "PGMQ",
            Self::Awa => "awa",
            Self::GraphileWorker => "graphile_worker",
            Self::Sqlxmq => "sqlxmq",
            Self::Bare => "bare DELETE",
        }
    }

    /// Whether this program was built with it.
    pub(crate) fn is_built(self) -> bool {
        cfg!(feature = "peers") || matches!(self, Self::VtqSql | Self::VtqWorker | Self::Bare)
    }

    /// What is installed for it; the two drivers of vtq share that.
    pub(crate) fn schema(self) -> &'static str {
        match self {
            Self::VtqSql | Self::VtqWorker => "vtq",
            Self::Pgmq => "pgmq",
            Self::Awa => "awa",
            Self::GraphileWorker => "graphile_worker",
            Self::Sqlxmq => "sqlxmq",
            Self::Bare => "bare",
        }
    }

    /// Whether it is driven by the client loop, and not by a worker of its own.
    pub(crate) fn is_sql(self) -> bool {
        matches!(self, Self::VtqSql | Self::Pgmq | Self::Bare)
    }

    /// Whether it can do this with a message that was handled.
    pub(crate) fn can(self, on_ack: OnAck) -> bool {
        on_ack == OnAck::Delete || matches!(self, Self::VtqSql | Self::VtqWorker | Self::Pgmq)
    }

    /// Installs it into an empty database, with one empty queue.
    pub(crate) async fn install(self, url: &str) -> Result<()> {
        match self {
            Self::VtqSql | Self::VtqWorker => vtq::install(url).await,
            Self::Pgmq => pgmq::install(url).await,
            Self::Awa => awa::install(url).await,
            Self::GraphileWorker => graphile_worker::install(url).await,
            Self::Sqlxmq => sqlxmq::install(url).await,
            Self::Bare => bare::install(url).await,
        }
    }

    /// Sets the queue up for what is to become of handled messages, where that is the queue's business.
    pub(crate) async fn set_on_ack(self, url: &str, on_ack: OnAck) -> Result<()> {
        match self {
            Self::VtqSql | Self::VtqWorker => vtq::set_on_ack(url, on_ack).await,
            _ => Ok(()),
        }
    }

    /// Connects a producer.
    pub(crate) async fn producer(self, url: &str) -> Result<Producer> {
        Ok(match self {
            Self::VtqSql => Producer::Vtq(Sender::connect(url).await?),
            Self::VtqWorker => Producer::VtqLibrary(vtq::library(url).await?),
            Self::Pgmq => Producer::Pgmq(Sender::connect(url).await?),
            Self::Awa => Producer::Awa(awa::Sender::connect(url).await?),
            Self::GraphileWorker => Producer::GraphileWorker(graphile_worker::Sender::connect(url).await?),
            Self::Sqlxmq => Producer::Sqlxmq(sqlxmq::Sender::connect(url).await?),
            Self::Bare => Producer::Bare(Sender::connect(url).await?),
        })
    }

    /// Consumes until it is told to stop.
    pub(crate) async fn consume(self, consume: Consume) -> Result<()> {
        match self {
            Self::VtqSql => client_loop::run::<vtq::Sql>(consume).await,
            Self::VtqWorker => vtq::work(consume).await,
            Self::Pgmq => client_loop::run::<pgmq::Sql>(consume).await,
            Self::Awa => awa::work(consume).await,
            Self::GraphileWorker => graphile_worker::work(consume).await,
            Self::Sqlxmq => sqlxmq::work(consume).await,
            Self::Bare => client_loop::run::<bare::Sql>(consume).await,
        }
    }

    /// The statements that put `:count` messages into the queue that are of this kind; none where it has no such thing.
    pub(crate) fn fill(self, backlog: Backlog) -> Option<&'static [&'static str]> {
        match self {
            Self::VtqSql | Self::VtqWorker => vtq::fill(backlog),
            Self::Pgmq => pgmq::fill(backlog),
            _ => None,
        }
    }

    /// The schema and the name of the live queue's table; none where it is not one table.
    pub(crate) fn table(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::VtqSql | Self::VtqWorker => Some(("vtq", "bench")),
            Self::Pgmq => Some(("pgmq", "q_bench")),
            Self::GraphileWorker => Some(("graphile_worker", "_private_jobs")),
            Self::Bare => Some(("public", "bench")),
            Self::Awa | Self::Sqlxmq => None,
        }
    }
}

/// Something that sends.
#[derive(Debug)]
pub(crate) enum Producer {
    Vtq(Sender<vtq::Sql>),
    VtqLibrary(::vtq::Queue),
    Pgmq(Sender<pgmq::Sql>),
    Awa(awa::Sender),
    GraphileWorker(graphile_worker::Sender),
    Sqlxmq(sqlxmq::Sender),
    Bare(Sender<bare::Sql>),
}

impl Producer {
    /// Sends these messages as one batch, by the peer's own means for that.
    pub(crate) async fn send(&self, bodies: Vec<Body>) -> Result<()> {
        match self {
            Self::Vtq(sender) => sender.send(bodies).await,
            Self::VtqLibrary(queue) => vtq::send(queue, bodies).await,
            Self::Pgmq(sender) => sender.send(bodies).await,
            Self::Awa(sender) => sender.send(bodies).await,
            Self::GraphileWorker(sender) => sender.send(bodies).await,
            Self::Sqlxmq(sender) => sender.send(bodies).await,
            Self::Bare(sender) => sender.send(bodies).await,
        }
    }
}

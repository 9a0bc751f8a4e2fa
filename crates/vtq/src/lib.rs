//! A message queue inside PostgreSQL, built on visibility timeouts.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod admin;
mod backoff;
mod call;
mod connect;
mod dead_letter;
mod error;
mod failure;
mod inspect;
mod lint;
mod message;
mod migrate;
mod name;
pub mod on;
mod payload;
mod queue;
mod read;
mod schedule;
mod send;
mod settle;
mod sql;
mod wire;
mod worker;

pub use admin::{Created, GroupOnDead, OnAck, QueueOptions, Rate};
pub use backoff::{Backoff, Jitter, OnDeadline};
pub use connect::{ConnectOptions, Connection, Dedicated, Vtq};
pub use dead_letter::{Purge, Reason, RedriveFilter, Swept};
pub use error::{Error, ErrorKind, Result};
pub use failure::Failure;
pub use inspect::{Attempt, DeadLetter, DeadLetterDetail, Metrics, WorkerInfo};
pub use lint::{Finding, Severity, SimulatedFailure, Simulation, TimeToDeadLetter};
pub use message::{Lease, Message, MessageId};
pub use migrate::{MigrateReport, SchemaState};
pub use name::QueueName;
pub use payload::MAX_MESSAGE_BYTES;
pub use queue::{Exact, Queue};
pub use read::ReadOptions;
pub use schedule::{Cron, Missed, Schedule, ScheduleInfo, ScheduleState};
pub use send::{OnConflict, Outgoing, SendOptions, SendOutcome, SendReport, UniqueUntil};
pub use settle::{Fate, Settled};
pub use worker::{
    CancelCause, Capsule, Context, Ending, Handler, IntoOutcome, Outcome, Stopped, WakeUp, Worker,
    WorkerBuilder, WorkerEvent, batch_fn, handler_fn, json,
};

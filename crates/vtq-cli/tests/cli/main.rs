//! The built binary against a real PostgreSQL: each command, its exit codes, its JSON and its sentences.
//!
//! One server for the process, a database a test; see the crate `vtq-tests`.

#![allow(clippy::unwrap_used)]

mod bench;
mod dlq;
mod lint;
mod look;
mod manners;
mod message;
mod queue;
mod schedule;
mod send;
mod stream;
mod support;

//! `vtq start`: the real binary on a real PostgreSQL, with each kind of handler.

#![allow(clippy::unwrap_used, missing_docs)]

mod exec;
mod line;
mod log;
mod pipe;
mod schedule;
mod server;
mod signal;
mod stop;
mod url;
mod worker;

//! Chaos: a cluster a test, N messages with known ids under load, and a fault at a random moment.
//!
//! `cargo test -p vtq-tests --test chaos`; `VTQ_CHAOS_SEED` repeats a run's dice, `VTQ_CHAOS_LONG=1` makes outages as
//! long as in production. What each test does and has shown is in `tests/README.md`.
#![allow(clippy::unwrap_used)]

mod aging;
mod backends;
mod child;
mod clock;
mod deadlines;
mod failover;
mod harness;
mod lanes;
mod limits;
mod network;
mod pooler;
mod process;
mod producer;
mod proxy;
mod runs;
mod server;
mod unique;
mod verdict;
mod work;

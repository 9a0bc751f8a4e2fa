//! The queue as SQL alone. These run on every PostgreSQL that vtq supports.

mod session;

mod backoff;
mod fail;
mod fence;
mod names;
mod read;
mod send;
mod time;
mod wake;

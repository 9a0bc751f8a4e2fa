//! The queue as SQL alone. These run on every PostgreSQL that vtq supports.

mod session;

mod names;
mod time;

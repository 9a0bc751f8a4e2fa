//! Integration tests: a module a subject, all against a real PostgreSQL.
#![allow(clippy::unwrap_used)]

mod dev;
mod docs;
mod library;
mod model;
mod sql;
mod worker;

//! A throwaway PostgreSQL from the binaries on this machine: for tests, and for `vtq demo`.
//!
//! ```no_run
//! # fn main() -> Result<(), vtq_dev::Error> {
//! let cluster = vtq_dev::Cluster::builder().start()?;
//! println!("{}", cluster.url());
//! // Dropping it stops the server and removes its folder.
//! # Ok(())
//! # }
//! ```
//!
//! It needs `initdb` and `postgres` and nothing else: no `pg_ctl`, no `psql`, no running server, no privileges, no
//! network but the loopback interface. Set `VTQ_PG_BIN` to choose among several installed versions.
//!
//! A cluster lives in one folder, `vtq-dev-<pid>-<n>` under the temporary directory, and never outlives the process
//! that started it, however that process ends; [`Cluster::keep`] is the exception. Unix only.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod account;
mod builder;
mod cluster;
mod conf;
mod error;
mod folder;
mod initdb;
mod install;
mod kept;
mod locate;
mod server;
mod shell;
mod standby;
mod watchdog;

pub use builder::Builder;
pub use cluster::{Cluster, StopMode};
pub use error::Error;
pub use kept::Kept;

//! What the integration tests share: a PostgreSQL for the process, a database a test, and ways to wait and to look.
//!
//! ```no_run
//! # async fn f() {
//! let db = vtq_tests::TestDb::new().await;
//! let client = db.client().await;
//! client.execute("SELECT vtq.create_queue('orders')", &[]).await.expect("create_queue");
//! # }
//! ```
//!
//! The server is a throwaway one, or the one of `VTQ_TEST_DATABASE_URL`, whose role must be allowed to create
//! databases. Without either a test fails, and says how to install PostgreSQL. Nothing is ever skipped.

mod cluster;
mod database;
mod message;
mod plan;
mod server;
mod template;
mod wait;

pub use cluster::own_cluster;
pub use database::TestDb;
pub use message::make_visible;
pub use plan::{explain, seq_scans};
pub use template::install;
pub use wait::wait_until;

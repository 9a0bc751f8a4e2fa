//! Clusters that tests may break.

use vtq_dev::{Builder, Cluster};

/// Starts a cluster of the test's own, for tests that restart, promote or kill the server; options as in `options`.
///
/// It is empty: [`install`](crate::install) puts the schema into one of its databases. Its methods block, so a test
/// whose connections must be served meanwhile needs `#[tokio::test(flavor = "multi_thread")]`.
///
/// # Panics
/// If it does not start.
pub fn own_cluster(options: impl FnOnce(Builder) -> Builder) -> Cluster {
    options(Cluster::builder()).start().expect("a cluster of the test's own")
}

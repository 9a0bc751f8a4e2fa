//! A database of a test's own.

use tokio_postgres::{Client, NoTls};

use crate::server::Server;

/// A database that nobody else uses; dropped, some time later, when this is dropped.
#[derive(Debug)]
pub struct TestDb {
    name: String,
    url: String,
}

impl TestDb {
    /// Makes a database with vtq installed in it.
    ///
    /// # Panics
    /// If there is no server to make it on.
    pub async fn new() -> Self {
        Self::create(false).await
    }

    /// Makes an empty database, for tests that install vtq themselves.
    ///
    /// # Panics
    /// If there is no server to make it on.
    pub async fn empty() -> Self {
        Self::create(true).await
    }

    async fn create(is_empty: bool) -> Self {
        let server = Server::get();
        let name = server.create_database(is_empty).await;
        let url = server.url_for(&name);
        Self { name, url }
    }

    /// A libpq URL, or a keyword string if `VTQ_TEST_DATABASE_URL` is one.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The name of the database, `vtq_t_<pid>_<n>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens a connection, and serves it in a task of the current runtime.
    ///
    /// # Panics
    /// If that fails.
    pub async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.expect("a connection");
        tokio::spawn(connection);
        client
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        Server::get().drop_database(std::mem::take(&mut self.name));
    }
}

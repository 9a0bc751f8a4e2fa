//! The cluster that everything is measured on, and a fresh database for each measurement.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};
use vtq_dev::Cluster;

use crate::peer::Peer;

/// The same for every peer. Room enough that neither memory nor a checkpoint in the middle decides; commits wait for
/// the disk, as they do where messages matter.
const SETTINGS: [(&str, &str); 9] = [
    ("synchronous_commit", "on"),
    ("shared_buffers", "512MB"),
    ("max_wal_size", "8GB"),
    ("min_wal_size", "1GB"),
    ("checkpoint_timeout", "30min"),
    ("max_connections", "300"),
    ("autovacuum", "on"),
    ("autovacuum_naptime", "10s"),
    ("track_io_timing", "off"),
];

/// A running cluster.
#[derive(Debug)]
pub(crate) struct Bench {
    cluster: Cluster,
    pub(crate) admin: Client,
    /// What is installed in a database to clone.
    installed: Mutex<HashSet<&'static str>>,
    counter: AtomicU32,
}

impl Bench {
    /// Starts it.
    pub(crate) async fn start() -> Result<Self> {
        let mut builder = Cluster::builder().durable();
        for (name, value) in SETTINGS {
            builder = builder.setting(name, value);
        }
        let cluster = builder.start().context("cannot start a PostgreSQL to measure on")?;
        let admin = connect(&cluster.url()).await?;
        Ok(Self { cluster, admin, installed: Mutex::default(), counter: AtomicU32::new(0) })
    }

    /// The server's first process.
    pub(crate) fn postmaster(&self) -> Result<u32> {
        self.cluster.pid().context("the server is stopped")
    }

    /// Makes a database with this peer installed and its queue empty, and returns its URL. The one before is dropped,
    /// and a checkpoint is done, so that every measurement starts alike.
    pub(crate) async fn fresh(&self, peer: Peer) -> Result<String> {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        if let Some(before) = number.checked_sub(1) {
            self.admin.batch_execute(&format!("DROP DATABASE IF EXISTS run_{before} WITH (FORCE)")).await?;
        }
        let name = format!("run_{number}");
        self.clone_template(peer, &name).await?;
        self.admin.batch_execute("CHECKPOINT").await?;
        Ok(self.cluster.url_for(&name))
    }

    /// Returns the URL of a database with this peer that stays until the end, and whether it was made now.
    pub(crate) async fn kept(&self, peer: Peer, name: &str) -> Result<(String, bool)> {
        let is_new =
            self.admin.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name]).await?.is_none();
        if is_new {
            self.clone_template(peer, name).await?;
        }
        Ok((self.cluster.url_for(name), is_new))
    }

    async fn clone_template(&self, peer: Peer, name: &str) -> Result<()> {
        let template = format!("template_{}", peer.schema());
        let mut installed = self.installed.lock().await;
        if installed.insert(peer.schema()) {
            self.admin.batch_execute(&format!("CREATE DATABASE {template}")).await?;
            let url = self.cluster.url_for(&template);
            peer.install(&url).await.with_context(|| format!("cannot install {}", peer.name()))?;
        }
        // A clone fails while anyone, such as an autovacuum worker, is connected to the original.
        self.admin
            .batch_execute(&format!(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{template}'"
            ))
            .await?;
        Ok(self.admin.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await?)
    }
}

/// Connects; the connection ends with the client.
pub(crate) async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.context("cannot connect")?;
    tokio::spawn(connection);
    Ok(client)
}

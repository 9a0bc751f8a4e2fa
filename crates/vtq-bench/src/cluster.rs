//! The cluster that everything is measured on, and a fresh database for each measurement.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};
use vtq_dev::Cluster;

use crate::args::Args;
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
    /// Peers that are installed in a database to clone.
    installed: Mutex<HashSet<Peer>>,
    counter: AtomicU32,
}

impl Bench {
    /// Starts it.
    pub(crate) async fn start(_args: &Args) -> Result<Self> {
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

    /// Makes a database with this peer installed and its queue empty, and returns its URL. Those before are dropped,
    /// and a checkpoint is done, so that every measurement starts alike.
    pub(crate) async fn fresh(&self, peer: Peer) -> Result<String> {
        let mut installed = self.installed.lock().await;
        let template = format!("template_{}", peer.schema());
        if !installed.contains(&peer) {
            self.admin.batch_execute(&format!("CREATE DATABASE {template}")).await?;
            let url = self.cluster.url_for(&template);
            peer.install(&url).await.with_context(|| format!("cannot install {}", peer.name()))?;
            installed.extend(Peer::ALL.into_iter().filter(|other| other.schema() == peer.schema()));
        }
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        if let Some(before) = number.checked_sub(1) {
            self.admin.batch_execute(&format!("DROP DATABASE IF EXISTS run_{before} WITH (FORCE)")).await?;
        }
        // A clone fails while anyone, such as an autovacuum worker, is connected to the original.
        self.admin
            .batch_execute(&format!(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{template}'"
            ))
            .await?;
        self.admin.batch_execute(&format!("CREATE DATABASE run_{number} TEMPLATE {template}")).await?;
        self.admin.batch_execute("CHECKPOINT").await?;
        Ok(self.cluster.url_for(&format!("run_{number}")))
    }
}

/// Connects; the connection ends with the client.
pub(crate) async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.context("cannot connect")?;
    tokio::spawn(connection);
    Ok(client)
}

//! One measurement: messages, wall time, server CPU and WAL between two instants.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio_postgres::Client;

use crate::figure::Metric;
use crate::tally::Tally;
use crate::{cpu, wal};

/// A measurement that runs.
#[derive(Debug)]
pub(crate) struct Meter {
    postmaster: u32,
    started: Instant,
    handled: u64,
    cpu_s: f64,
    wal: u64,
}

/// What was measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) handled: u64,
    pub(crate) took: Duration,
    pub(crate) cpu_s: f64,
    pub(crate) wal_bytes: u64,
}

impl Meter {
    pub(crate) async fn start(postmaster: u32, admin: &Client, tally: &Tally) -> Result<Self> {
        tally.forget_latencies();
        let wal = wal::position(admin).await?;
        let cpu_s = cpu::seconds(postmaster)?;
        Ok(Self { postmaster, started: Instant::now(), handled: tally.handled(), cpu_s, wal })
    }

    /// Ends it. An error when nothing was handled: there is nothing to divide by.
    pub(crate) async fn stop(self, admin: &Client, tally: &Tally) -> Result<Reading> {
        let handled = tally.handled() - self.handled;
        let took = self.started.elapsed();
        let cpu_s = cpu::seconds(self.postmaster)? - self.cpu_s;
        let wal_bytes = wal::position(admin).await?.saturating_sub(self.wal);
        if handled == 0 {
            bail!("nothing was handled within {:.1} s", took.as_secs_f64());
        }
        Ok(Reading { handled, took, cpu_s, wal_bytes })
    }
}

impl Reading {
    /// Messages a second, server CPU and WAL a message.
    pub(crate) fn values(&self) -> Vec<(Metric, f64)> {
        let messages = self.handled as f64;
        vec![
            (Metric::Rate, self.rate()),
            (Metric::CpuPerMessage, self.cpu_s * 1e6 / messages),
            (Metric::WalPerMessage, self.wal_bytes as f64 / messages),
        ]
    }

    pub(crate) fn rate(&self) -> f64 {
        self.handled as f64 / self.took.as_secs_f64()
    }

    /// Server CPU in percent of one core.
    pub(crate) fn cpu_percent(&self) -> f64 {
        self.cpu_s * 100.0 / self.took.as_secs_f64()
    }
}

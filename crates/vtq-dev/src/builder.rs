//! How a cluster is asked for.

use std::path::PathBuf;

use crate::conf::Settings;
use crate::{Cluster, Error};

/// Options of a new cluster; [`start`](Builder::start) makes it.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Builder {
    pub(crate) settings: Settings,
    pub(crate) bin_dir: Option<PathBuf>,
    pub(crate) base_dir: Option<PathBuf>,
}

impl Builder {
    /// Sets a parameter of `postgresql.conf`.
    ///
    /// The last value of a name wins, also over the defaults: `fsync` and `full_page_writes` off, `shared_buffers`
    /// 32MB, `max_connections` 200, `timezone` UTC, `listen_addresses` 127.0.0.1. The port and the socket's folder
    /// are the cluster's own.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.set(name, value);
        self
    }

    /// Turns `fsync` and `full_page_writes` on, for a cluster that must survive a crash of the machine.
    pub fn durable(mut self) -> Self {
        self.settings.make_durable();
        self
    }

    /// Takes `initdb` and `postgres` from this folder, and looks nowhere else.
    pub fn bin_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.bin_dir = Some(folder.into());
        self
    }

    /// Puts the cluster's folder under this one. Default: `TMPDIR`, or `/tmp` or `/var/tmp` where the server's
    /// user cannot enter that or its path is too long for a socket.
    pub fn base_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.base_dir = Some(folder.into());
        self
    }

    /// Makes the cluster and waits until it accepts connections; one to four seconds.
    ///
    /// Before that, it removes what dead runs have left in the same place.
    ///
    /// # Errors
    /// [`Error::is_not_installed`] if there is no PostgreSQL 14 or newer; otherwise a setting that is refused, no
    /// usable folder, or a server that does not start, with the last lines of its log as the cause.
    pub fn start(self) -> Result<Cluster, Error> {
        Cluster::create(self)
    }
}

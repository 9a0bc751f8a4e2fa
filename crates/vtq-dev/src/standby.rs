//! A streaming standby.

use std::fs::{self, File};
use std::path::Path;

use crate::{Cluster, Error, StopMode};

impl Cluster {
    /// Makes a standby that follows this cluster, with the same settings.
    ///
    /// The data is copied while this cluster is down, so its sessions end and it comes back at the same address:
    /// that needs none of the client programs, which not every build has.
    ///
    /// # Errors
    /// As for [`Builder::start`](crate::Builder::start) and [`stop`](Self::stop).
    pub fn standby(&mut self) -> Result<Cluster, Error> {
        if self.pid().is_some() {
            self.stop(StopMode::Fast)?;
        }
        let copied = self.copy();
        self.start_again()?;
        let mut standby = copied?;
        standby.start_again()?;
        Ok(standby)
    }

    /// A stopped standby.
    fn copy(&self) -> Result<Cluster, Error> {
        let standby = self.sibling()?;
        let (from, to) = (self.data_dir(), standby.data_dir());
        let output = self
            .account
            .command(Path::new("cp"), standby.folder.path())
            .arg("-R")
            .args([&from, &to])
            .output()
            .map_err(|error| Error::caused("cannot run `cp`", error))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::caused(format!("cannot copy {} to {}", from.display(), to.display()), stderr));
        }
        self.follow_in(&to)
            .map_err(|error| Error::caused(format!("cannot make a standby of {}", to.display()), error))?;
        Ok(standby)
    }

    fn follow_in(&self, data: &Path) -> std::io::Result<()> {
        let socket_dir = self.socket_dir().to_string_lossy().replace('\\', r"\\").replace('\'', r"\'");
        let conninfo = format!("host='{socket_dir}' port={} user=postgres", self.port());
        // Once as a value of libpq, above, and once as one of the server's.
        let quoted = conninfo.replace('\\', r"\\").replace('\'', "''");
        let auto = data.join("postgresql.auto.conf");
        let text = fs::read_to_string(&auto)?;
        fs::write(&auto, format!("{text}primary_conninfo = '{quoted}'\n"))?;
        let signal = data.join("standby.signal");
        File::create(&signal)?;
        self.account.give(&signal)
    }
}

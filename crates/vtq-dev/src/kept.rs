//! A cluster that outlives its owner.

use std::path::{Path, PathBuf};

use crate::shell;

/// What it takes to use, stop and remove a cluster later; see [`Cluster::keep`](crate::Cluster::keep).
#[derive(Debug, Clone)]
pub struct Kept {
    pub(crate) url: String,
    pub(crate) folder: PathBuf,
    pub(crate) pid: u32,
}

impl Kept {
    /// A libpq URL of the database `postgres`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The folder with everything that belongs to the cluster.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A shell command that stops the server and removes its folder.
    pub fn stop_line(&self) -> String {
        let folder = shell::path(&self.folder);
        // The process id is read again: someone may have restarted the server. INT is a fast shutdown, which removes
        // the file at its end; the process itself may stay as a zombie where nobody waits for orphans.
        format!(
            "cd {folder}/data && pid=$(head -n 1 postmaster.pid) && kill -INT \"$pid\" && \
             while [ -e postmaster.pid ] && kill -0 \"$pid\" 2>/dev/null; do sleep 0.1; done; \
             cd / && rm -rf {folder}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_line_quotes_the_folder() {
        let kept = Kept { url: String::new(), folder: "/tmp/a b".into(), pid: 7 };

        let line = kept.stop_line();

        assert!(line.starts_with("cd '/tmp/a b'/data && "), "{line}");
        assert!(line.ends_with("rm -rf '/tmp/a b'"), "{line}");
    }
}

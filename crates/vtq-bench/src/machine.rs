//! What the figures were measured on. No host name, no path.

use std::fs;

use anyhow::{Context, Result};
use nix::sys::utsname::uname;
use tokio_postgres::Client;

/// One line: cores, memory, kernel, PostgreSQL and its settings that matter.
pub(crate) async fn describe(client: &Client) -> Result<String> {
    let cores = std::thread::available_parallelism().context("cannot count the cores")?;
    let system = uname().context("cannot ask for the kernel")?;
    let kernel = system.release().to_string_lossy().into_owned();
    let row = client
        .query_one(
            "SELECT current_setting('server_version'), current_setting('fsync'), \
             current_setting('synchronous_commit'), current_setting('shared_buffers')",
            &[],
        )
        .await?;
    let [version, fsync, commit, buffers] = [0, 1, 2, 3].map(|at| row.get::<_, String>(at));
    Ok(format!(
        "{}, {cores} cores shared by server and clients, {} GiB of memory, {} {kernel}; PostgreSQL {version}, \
         fsync {fsync}, synchronous_commit {commit}, shared_buffers {buffers}.",
        system.machine().to_string_lossy(),
        memory_gib()?,
        system.sysname().to_string_lossy(),
    ))
}

fn memory_gib() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("cannot ask for the memory")?;
    let kib: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .context("/proc/meminfo does not say how much memory there is")?;
    Ok(kib.div_ceil(1024 * 1024))
}

//! The folder of one cluster, and the removal of folders that dead runs left behind.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use nix::fcntl::{Flock, FlockArg, OFlag};

use crate::Error;
use crate::account::Account;
use crate::server;

const PREFIX: &str = "vtq-dev-";

/// Held locked by the owner for as long as it lives. A process id could not tell that: it is given out again, and it
/// means nothing in another container that shares this temporary directory.
const LOCK: &str = "lock";

/// Marks a cluster that was meant to outlive its owner.
const KEPT: &str = "kept";

/// A folder without a lock may be one that is just being made.
const NEWBORN: Duration = Duration::from_secs(60);

/// The path of a Unix socket may have 107 bytes on Linux and 103 on macOS.
const LONGEST_SOCKET: usize = 103;
const SOCKET_NAME: &str = "/.s.PGSQL.65535";

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// A private folder that the server's user owns: `data/`, the log and the socket are in it. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: Flock<File>,
    is_kept: bool,
}

impl Folder {
    /// Makes one under `base`, or else under the first usable temporary directory; sweeps there beforehand.
    pub(crate) fn create(base: Option<&Path>, account: &Account) -> Result<Self, Error> {
        let bases = match base {
            Some(base) => vec![base.to_owned()],
            // Root's TMPDIR is often one that the server's user cannot enter.
            None => vec![env::temp_dir(), "/tmp".into(), "/var/tmp".into()],
        };
        let mut refusals = Vec::new();
        for base in bases {
            let refusal = match usable(&base, account) {
                Ok(base) => {
                    sweep(&base, account);
                    match create_in(&base, account) {
                        Ok(folder) => return Ok(folder),
                        Err(error) => error.to_string(),
                    }
                }
                Err(refusal) => refusal,
            };
            refusals.push(format!("{}: {refusal}", base.display()));
        }
        Err(Error::new(format!("no place for the cluster's folder ({})", refusals.join("; "))))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("postgres.log")
    }

    /// Leaves the folder where it is, for good.
    pub(crate) fn keep(mut self) -> Result<PathBuf, Error> {
        File::create(self.path.join(KEPT))
            .map_err(|error| Error::caused(format!("cannot mark {} as kept", self.path.display()), error))?;
        self.is_kept = true;
        Ok(self.path.clone())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            remove(&self.path);
        }
    }
}

fn usable(base: &Path, account: &Account) -> Result<PathBuf, String> {
    let base = base.canonicalize().map_err(|error| error.to_string())?;
    if let Some(barred) = account.barred_from(&base) {
        return Err(format!("user `{}` cannot enter {}", account.name(), barred.display()));
    }
    let longest = base.as_os_str().as_bytes().len() + format!("/{PREFIX}4194304-99{SOCKET_NAME}").len();
    if longest > LONGEST_SOCKET {
        return Err(format!("too long for a socket: {longest} bytes, at most {LONGEST_SOCKET}"));
    }
    Ok(base)
}

fn create_in(base: &Path, account: &Account) -> io::Result<Folder> {
    let path = loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{PREFIX}{}-{number}", process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => break path,
            // A process of another container, or a dead one that had our number.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
    };
    let lock = lock(&path, true).inspect_err(|_| remove(&path))?;
    let folder = Folder { path, _lock: lock, is_kept: false };
    account.give(&folder.path)?;
    Ok(folder)
}

fn lock(folder: &Path, create: bool) -> io::Result<Flock<File>> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(create)
        .mode(0o600)
        // The folder may be another user's: no link or named pipe in place of the file leads us elsewhere.
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(folder.join(LOCK))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno.into())
}

/// Removes what runs left behind whose watchdog was killed too, or that a crash of the machine cut off.
fn sweep(base: &Path, account: &Account) {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())) {
        let path = entry.path();
        // The lock is held while we remove, so that two sweepers do not both stop the server.
        if let Some(_lock) = abandoned(&path, account) {
            server::stop_stray(&path.join("data"));
            remove(&path);
        }
    }
}

/// The lock of a folder whose owner is gone (none in it, if the owner died before it had one); `None` otherwise.
fn abandoned(path: &Path, account: &Account) -> Option<Option<Flock<File>>> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_dir() || !account.owns(metadata.uid()) || path.join(KEPT).exists() {
        return None;
    }
    match lock(path, false) {
        Ok(lock) => Some(Some(lock)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let age = SystemTime::now().duration_since(metadata.modified().ok()?).ok()?;
            (age > NEWBORN).then_some(None)
        }
        Err(_) => None,
    }
}

/// Tries for a while: after a hard kill the server's children take a moment to notice, and may still write.
fn remove(path: &Path) {
    for _ in 0..40 {
        match fs::remove_dir_all(path) {
            Ok(()) => return,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(_) => sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("vd").tempdir_in("/tmp").unwrap()
    }

    #[test]
    fn a_living_owner_keeps_its_folder_from_the_sweep() {
        let base = base();
        let living = Folder::create(Some(base.path()), &Account::Own).unwrap();

        let second = Folder::create(Some(base.path()), &Account::Own).unwrap();

        assert!(living.path().is_dir());
        let paths = [living.path().to_owned(), second.path().to_owned()];
        drop((living, second));
        assert!(paths.iter().all(|path| !path.exists()));
    }

    #[test]
    fn the_sweep_removes_abandoned_folders_and_nothing_else() {
        let base = base();
        let folder = |name: &str, files: &[&str]| {
            let path = base.path().join(name);
            fs::create_dir(&path).unwrap();
            for file in files {
                File::create(path.join(file)).unwrap();
            }
            path
        };
        let abandoned = folder("vtq-dev-1-0", &[LOCK]);
        let kept = folder("vtq-dev-1-1", &[LOCK, KEPT]);
        let newborn = folder("vtq-dev-1-2", &[]);
        let other = folder("vtq-1-3", &[LOCK]);

        sweep(base.path(), &Account::Own);

        assert!(!abandoned.exists());
        assert!(kept.exists() && newborn.exists() && other.exists());
    }

    #[test]
    fn a_long_base_is_refused_in_words() {
        let base = base();
        let long = base.path().join("x".repeat(80));
        fs::create_dir(&long).unwrap();

        let error = Folder::create(Some(&long), &Account::Own).unwrap_err();

        assert!(error.to_string().contains("too long for a socket"), "{error}");
    }
}

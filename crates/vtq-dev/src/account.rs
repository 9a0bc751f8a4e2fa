//! Which user runs the server, and what that user can reach.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{User, geteuid};

use crate::Error;

/// The user that `initdb` and `postgres` run as.
#[derive(Debug, Clone)]
pub(crate) enum Account {
    /// Whoever we are.
    Own,
    /// We are root, and PostgreSQL refuses to run as root.
    Other { name: String, uid: u32, gid: u32 },
}

impl Account {
    /// `postgres` first: it exists for this, and on a machine with the packages it is there. Else `nobody`: every
    /// Unix has it, and it owns nothing that the server could harm.
    pub(crate) fn choose() -> Result<Self, Error> {
        if !geteuid().is_root() {
            return Ok(Self::Own);
        }
        let user = ["postgres", "nobody"].into_iter().find_map(|name| User::from_name(name).ok().flatten());
        match user {
            Some(user) => Ok(Self::Other { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() }),
            None => Err(Error::new(
                "postgres refuses to run as root, and there is neither a user `postgres` nor a user `nobody`",
            )),
        }
    }

    /// A command that runs as this user in `folder`, with none of our libpq or locale settings.
    pub(crate) fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        // A working directory that the other user may not enter makes initdb fail with a puzzling message.
        command.current_dir(folder);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C");
        if let Self::Other { uid, gid, .. } = self {
            // `uid` also drops root's supplementary groups: std calls setgroups(0) before setuid when we are root.
            command.gid(*gid).uid(*uid);
        }
        command
    }

    /// Hands `path` to this user.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Other { uid, gid, .. } => chown(path, Some(*uid), Some(*gid)),
        }
    }

    /// Whether files of user `uid` are ours to remove.
    pub(crate) fn owns(&self, uid: u32) -> bool {
        uid == geteuid().as_raw() || matches!(self, Self::Other { uid: other, .. } if *other == uid)
    }

    /// The outermost folder on the way to `path`, `path` included, that this user may not enter.
    pub(crate) fn barred_from(&self, path: &Path) -> Option<PathBuf> {
        let Self::Other { uid, gid, .. } = self else { return None };
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut folders: Vec<&Path> = path.ancestors().collect();
        folders.reverse();
        let barred = |folder: &&Path| {
            folder.metadata().is_ok_and(|metadata| metadata.is_dir() && !may_enter(&metadata, *uid, *gid))
        };
        folders.into_iter().find(barred).map(Path::to_owned)
    }

    /// For messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Own => "the current user",
            Self::Other { name, .. } => name,
        }
    }
}

/// The mode bits alone: an access list may say otherwise, which only turns a hint wrong.
fn may_enter(metadata: &Metadata, uid: u32, gid: u32) -> bool {
    let bit = match () {
        () if metadata.uid() == uid => 0o100,
        () if metadata.gid() == gid => 0o010,
        () => 0o001,
    };
    metadata.mode() & bit != 0
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_private_folder_bars_another_user() {
        let base = tempfile::tempdir().unwrap();
        set_permissions(base.path(), Permissions::from_mode(0o755)).unwrap();
        let private = base.path().join("private");
        create_dir(&private).unwrap();
        create_dir(private.join("bin")).unwrap();
        set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
        let other = Account::Other { name: "other".into(), uid: 4_000_001, gid: 4_000_001 };

        let barred = other.barred_from(&private.join("bin"));

        let expected = private.canonicalize().unwrap();
        // Where the temporary directory itself is private, that one comes first.
        assert!(barred.is_some_and(|folder| expected.starts_with(folder)));
        assert_eq!(Account::Own.barred_from(&private), None);
    }

    #[test]
    fn settings_of_libpq_do_not_reach_the_server() {
        let command = Account::Own.command(Path::new("true"), Path::new("/"));

        let set: Vec<_> = command.get_envs().filter(|(_, value)| value.is_some()).collect();
        assert_eq!(set, [("LC_ALL".as_ref(), Some("C".as_ref()))]);
    }
}

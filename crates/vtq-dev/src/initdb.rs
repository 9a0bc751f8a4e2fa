//! Makes the data directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::{Error, conf};

/// What `initdb` is run with.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) account: &'a Account,
    pub(crate) initdb: PathBuf,
    /// Gets the data directory, `data`.
    pub(crate) folder: &'a Path,
    /// The watchdog's process group.
    pub(crate) group: i32,
}

impl Run<'_> {
    /// Makes a cluster whose superuser `postgres` has this password.
    pub(crate) fn run(&self, password: &str) -> Result<(), Error> {
        let failed = |error: io::Error| Error::caused("cannot make a data directory", error);
        let password_file = self.folder.join("password");
        write_private(&password_file, password).map_err(failed)?;
        self.account.give(&password_file).map_err(failed)?;

        let output = self
            .account
            .command(&self.initdb, self.folder)
            // `--no-locale`: text sorts the same everywhere. `password` goes over the loopback interface only, and
            // unlike SCRAM does not cost an unoptimized client many milliseconds a connection.
            .args(["--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions"])
            .args(["--auth-local=trust", "--auth-host=password", "--pwfile=password", "--pgdata=data"])
            .process_group(self.group)
            .output()
            .map_err(failed)?;
        if !output.status.success() {
            let text = [output.stdout, output.stderr].concat();
            let message = format!("initdb failed: {}", output.status);
            return Err(Error::caused(message, String::from_utf8_lossy(&text).trim().to_owned()));
        }

        fs::remove_file(&password_file).map_err(failed)?;
        self.include_settings().map_err(failed)
    }

    fn include_settings(&self) -> io::Result<()> {
        let main = self.folder.join("data/postgresql.conf");
        let mut file = OpenOptions::new().append(true).open(main)?;
        writeln!(file, "include '{}'", conf::FILE)
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

/// 128 of the system's random bits, in hexadecimal.
pub(crate) fn random_password() -> Result<String, Error> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Error::caused("cannot read /dev/urandom", error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_differ() {
        let [a, b] = [random_password().unwrap(), random_password().unwrap()];

        assert_eq!((a.len(), b.len()), (32, 32));
        assert_ne!(a, b);
    }
}

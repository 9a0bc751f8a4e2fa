//! Certificates and keys on disk.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{Error, ErrorKind, Result};

/// A client certificate with its chain, its key, and the name to give them in an error.
pub(super) struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) name: String,
}

/// Where trust begins, and the name to give it in an error.
#[derive(Debug)]
pub(super) struct Roots {
    pub(super) certs: Vec<CertificateDer<'static>>,
    pub(super) name: String,
}

impl Roots {
    pub(super) fn of_file(file: &Path) -> Result<Self> {
        let certs = certificates(file)?;
        Ok(Self { certs, name: format!("`{}`", file.display()) })
    }

    pub(super) fn of_system() -> Result<Self> {
        let loaded = rustls_native_certs::load_native_certs();
        if loaded.certs.is_empty() {
            let error = Error::new(ErrorKind::Tls, "this system has no root certificates");
            return Err(match loaded.errors.into_iter().next() {
                Some(cause) => error.with_source(cause.to_string()),
                None => error,
            });
        }
        Ok(Self { certs: loaded.certs, name: "the system's store".into() })
    }
}

/// The path of one of libpq's own files, if there is a home directory.
pub(super) fn in_home(name: &str) -> Option<PathBuf> {
    let folder = if cfg!(windows) { "AppData/Roaming/postgresql" } else { ".postgresql" };
    Some(std::env::home_dir()?.join(folder).join(name))
}

pub(super) fn identity(cert: &Path, key: &Path) -> Result<Identity> {
    let chain = certificates(cert)?;
    if !key.exists() {
        return Err(Error::new(
            ErrorKind::Tls,
            format!(
                "`{}` has a client certificate, but its key `{}` is missing",
                cert.display(),
                key.display()
            ),
        ));
    }
    refuse_if_open_to_others(key)?;
    let name = format!("the client certificate `{}` with the key `{}`", cert.display(), key.display());
    Ok(Identity { chain, key: private_key(key)?, name })
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_slice_iter(&read(file, "certificate")?).collect::<Result<Vec<_>, _>>();
    match read {
        Ok(certs) if !certs.is_empty() => Ok(certs),
        Ok(_) => Err(Error::new(ErrorKind::Tls, format!("`{}` holds no PEM certificate", file.display()))),
        Err(e) => {
            Err(Error::new(ErrorKind::Tls, format!("`{}` is not a PEM file", file.display())).with_source(e))
        }
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>> {
    let bytes = read(file, "key")?;
    let text = String::from_utf8_lossy(&bytes);
    if text.contains("ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(Error::new(
            ErrorKind::Tls,
            format!(
                "the private key `{}` is encrypted, and passphrases are not supported: decrypt it with \
                 `openssl pkey`, and keep it readable by its owner only",
                file.display()
            ),
        ));
    }
    let key = match text.contains("-----BEGIN") {
        true => PrivateKeyDer::from_pem_slice(&bytes).ok(),
        false => PrivateKeyDer::try_from(bytes).ok(),
    };
    key.ok_or_else(|| {
        let expected = "holds no private key in PKCS#8, PKCS#1 or SEC1 form";
        Error::new(ErrorKind::Tls, format!("`{}` {expected}", file.display()))
    })
}

fn read(file: &Path, what: &str) -> Result<Vec<u8>> {
    fs::read(file).map_err(|e| {
        Error::new(ErrorKind::Tls, format!("cannot read the {what} file `{}`", file.display())).with_source(e)
    })
}

/// libpq's rule: 0600 or less if owned by the user, 0640 or less if owned by root.
#[cfg(unix)]
fn refuse_if_open_to_others(key: &Path) -> Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let Ok(details) = fs::metadata(key) else { return Ok(()) };
    let forbidden = if details.uid() == 0 { 0o037 } else { 0o077 };
    if details.permissions().mode() & forbidden == 0 {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Tls,
        format!(
            "the private key `{}` has group or world access: its permissions must be u=rw (0600) or less if \
             owned by this user, or u=rw,g=r (0640) or less if owned by root",
            key.display()
        ),
    ))
}

#[cfg(not(unix))]
fn refuse_if_open_to_others(_: &Path) -> Result<()> {
    Ok(())
}

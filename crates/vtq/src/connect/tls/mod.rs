//! TLS as libpq does it, by rustls: what is tried, what is verified, and which files are read.
//!
//! <https://www.postgresql.org/docs/current/libpq-ssl.html>

mod explain;
mod files;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::{ClientConfig, SupportedProtocolVersion};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) use self::explain::explain;
use self::files::Roots;
use self::verify::Verifier;
use super::params::Params;
use super::settings::choice;
use crate::error::{Error, ErrorKind, Result};

/// The parameters about TLS, checked; no file has been read.
#[derive(Debug, Clone)]
pub(crate) struct TlsSettings {
    pub(crate) mode: Mode,
    pub(crate) is_direct: bool,
    roots: RootsFrom,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    sends_cert: SendsCert,
    sends_name: bool,
    versions: [Option<Version>; 2],
}

/// `sslmode`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RootsFrom {
    /// `~/.postgresql/root.crt`, if there is one.
    Home,
    File(PathBuf),
    System,
}

/// `sslcertmode`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendsCert {
    Never,
    IfThere,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    V1_0,
    V1_1,
    V1_2,
    V1_3,
}

const MODES: [(&str, Mode); 6] = [
    ("disable", Mode::Disable),
    ("allow", Mode::Allow),
    ("prefer", Mode::Prefer),
    ("require", Mode::Require),
    ("verify-ca", Mode::VerifyCa),
    ("verify-full", Mode::VerifyFull),
];
const VERSIONS: [(&str, Version); 4] = [
    ("TLSv1", Version::V1_0),
    ("TLSv1.1", Version::V1_1),
    ("TLSv1.2", Version::V1_2),
    ("TLSv1.3", Version::V1_3),
];

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        MODES[self as usize].0
    }

    fn must_verify(self) -> bool {
        self >= Self::VerifyCa
    }
}

impl TlsSettings {
    pub(crate) fn resolve(params: &Params) -> Result<Self> {
        let roots = match params.get("sslrootcert") {
            None => RootsFrom::Home,
            Some("system") => RootsFrom::System,
            Some(file) => RootsFrom::File(file.into()),
        };
        let default = if roots == RootsFrom::System { Mode::VerifyFull } else { Mode::Prefer };
        let mode = choice(params, "sslmode", &MODES)?.unwrap_or(default);
        if roots == RootsFrom::System && mode != Mode::VerifyFull {
            // Anybody can get a certificate from a public authority: without the host name it proves nothing.
            return Err(Error::config(format!(
                "`sslrootcert` is `system`, so `sslmode` must be verify-full, and is {}",
                mode.name()
            )));
        }
        let is_direct = choice(params, "sslnegotiation", &[("postgres", false), ("direct", true)])?;
        if is_direct == Some(true) && mode < Mode::Require {
            return Err(Error::config(format!(
                "`sslnegotiation` is direct, so `sslmode` must be require or stronger, and is {}",
                mode.name()
            )));
        }
        let certs =
            [("disable", SendsCert::Never), ("allow", SendsCert::IfThere), ("require", SendsCert::Always)];
        Ok(Self {
            mode,
            is_direct: is_direct.unwrap_or(false),
            roots,
            cert: params.get("sslcert").map(PathBuf::from),
            key: params.get("sslkey").map(PathBuf::from),
            sends_cert: choice(params, "sslcertmode", &certs)?.unwrap_or(SendsCert::IfThere),
            sends_name: choice(params, "sslsni", &[("0", false), ("1", true)])?.unwrap_or(true),
            versions: [
                choice(params, "ssl_min_protocol_version", &VERSIONS)?,
                choice(params, "ssl_max_protocol_version", &VERSIONS)?,
            ],
        })
    }

    /// Reads the certificates and keys; `None` if TLS is not to be tried at all.
    ///
    /// Called for every new connection, so that certificates can be renewed under a running process.
    pub(crate) fn load(&self) -> Result<Option<MakeRustlsConnect>> {
        if self.mode == Mode::Disable {
            return Ok(None);
        }
        // Given explicitly: a library must not install a provider for the whole process.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = self.load_roots()?;
        let verifier = Verifier::new(roots, self.mode == Mode::VerifyFull, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.protocol_versions()?)
            .map_err(|e| Error::new(ErrorKind::Tls, "cannot set up TLS").with_source(e))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match self.load_identity()? {
            Some(identity) => builder.with_client_auth_cert(identity.chain, identity.key).map_err(|e| {
                Error::new(ErrorKind::Tls, format!("cannot use {}", identity.name)).with_source(e)
            })?,
            None => builder.with_no_client_auth(),
        };
        config.enable_sni = self.sends_name;
        if self.is_direct {
            config.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(Some(MakeRustlsConnect::new(config)))
    }

    /// libpq carries on without a file that was asked for and is not there. So does this, but not in silence.
    pub(crate) fn warn_of_absent_files(&self) {
        if let RootsFrom::File(file) = &self.roots
            && !file.exists()
        {
            tracing::warn!(file = %file.display(), "sslrootcert is absent: the server's certificate is not verified");
        }
        if let Some(file) = self.cert.as_ref().filter(|file| !file.exists()) {
            tracing::warn!(file = %file.display(), "sslcert is absent: no client certificate is sent");
        }
    }

    /// Whatever the mode, a root certificate that is there is used; a mode that verifies needs one.
    fn load_roots(&self) -> Result<Option<Roots>> {
        let file = match &self.roots {
            RootsFrom::System => return Roots::of_system().map(Some),
            RootsFrom::File(file) => Some(file.clone()),
            RootsFrom::Home => files::in_home("root.crt"),
        };
        match file {
            Some(file) if file.exists() => Roots::of_file(&file).map(Some),
            _ if !self.mode.must_verify() => Ok(None),
            file => Err(Error::new(
                ErrorKind::Tls,
                format!(
                    "sslmode is {}, but there is no root certificate{}: give sslrootcert=<file>, or \
                     sslrootcert=system",
                    self.mode.name(),
                    file.map(|file| format!(" in `{}`", file.display())).unwrap_or_default()
                ),
            )),
        }
    }

    fn roots_name(&self) -> String {
        match &self.roots {
            RootsFrom::System => "the system's store".into(),
            RootsFrom::File(file) => format!("`{}`", file.display()),
            RootsFrom::Home => "`~/.postgresql/root.crt`".into(),
        }
    }

    fn load_identity(&self) -> Result<Option<files::Identity>> {
        if self.sends_cert == SendsCert::Never {
            return Ok(None);
        }
        let in_home = |name, given: &Option<PathBuf>| given.clone().or_else(|| files::in_home(name));
        let cert = in_home("postgresql.crt", &self.cert).filter(|file| file.exists());
        match (cert, in_home("postgresql.key", &self.key)) {
            (Some(cert), Some(key)) => files::identity(&cert, &key).map(Some),
            (Some(cert), None) => Err(Error::new(
                ErrorKind::Tls,
                format!("`{}` has a client certificate, but no sslkey is given", cert.display()),
            )),
            (None, _) if self.sends_cert == SendsCert::Always => {
                Err(Error::new(ErrorKind::Tls, "sslcertmode is require, but there is no client certificate"))
            }
            (None, _) => Ok(None),
        }
    }

    fn protocol_versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>> {
        let [min, max] = self.versions;
        let versions = [(Version::V1_2, &rustls::version::TLS12), (Version::V1_3, &rustls::version::TLS13)];
        let allowed: Vec<_> = versions
            .into_iter()
            .filter(|(version, _)| {
                min.is_none_or(|min| *version >= min) && max.is_none_or(|max| *version <= max)
            })
            .map(|(_, supported)| supported)
            .collect();
        match allowed.is_empty() {
            true => Err(Error::config(
                "ssl_min_protocol_version and ssl_max_protocol_version leave no version \
                                       of TLS: 1.2 and 1.3 are supported",
            )),
            false => Ok(allowed),
        }
    }
}

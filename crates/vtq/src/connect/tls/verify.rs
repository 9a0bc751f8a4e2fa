//! Whom to believe: libpq's rules for the server's certificate.
//!
//! rustls alone is stricter than OpenSSL in three ways that certificates made by the recipes of the PostgreSQL
//! manual run into. They are accepted here as psql accepts them: a self-signed certificate that is its own root, a
//! certificate of X.509 version 1, and a host name that stands in the common name only.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{self, CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{AlgorithmIdentifier, CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::der::oid::db::rfc5280::ID_CE_SUBJECT_ALT_NAME;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, SubjectAltName};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use super::files::Roots;
use crate::error::{Error, ErrorKind, Result};

type TlsResult<T> = Result<T, rustls::Error>;

#[derive(Debug)]
pub(super) struct Verifier {
    /// None: anybody may answer.
    trust: Option<Trust>,
    checks_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
struct Trust {
    anchors: RootCertStore,
    /// Certificates in the file that are no roots: links on the way to one, as for OpenSSL.
    links: Vec<CertificateDer<'static>>,
    roots: Vec<CertificateDer<'static>>,
}

impl Trust {
    fn new(roots: Roots) -> Result<Self> {
        let is_root = |cert: &CertificateDer<'_>| parse(cert).is_ok_and(|cert| is_self_signed(&cert));
        let (roots_only, links): (Vec<_>, Vec<_>) = roots.certs.into_iter().partition(is_root);
        let mut anchors = RootCertStore::empty();
        anchors.add_parsable_certificates(roots_only.iter().cloned());
        if anchors.is_empty() {
            return Err(Error::new(ErrorKind::Tls, format!("{} holds no root certificate", roots.name)));
        }
        Ok(Self { anchors, links, roots: roots_only })
    }
}

impl Verifier {
    pub(super) fn new(roots: Option<Roots>, checks_name: bool, provider: &CryptoProvider) -> Result<Self> {
        let trust = roots.map(Trust::new).transpose()?;
        Ok(Self { trust, checks_name, algorithms: provider.signature_verification_algorithms })
    }

    fn check_chain(
        &self,
        trust: &Trust,
        leaf: &CertificateDer<'_>,
        links: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> TlsResult<()> {
        let parsed = parse(leaf)?;
        if is_self_signed(&parsed) && trust.roots.iter().any(|root| root == leaf) {
            return check_dates(&parsed, now);
        }
        if parsed.tbs_certificate.version == Version::V1 {
            return self.check_signed_by_a_root(trust, &parsed, now);
        }
        let links: Vec<_> = links.iter().chain(&trust.links).cloned().collect();
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(leaf)?,
            &trust.anchors,
            &links,
            now,
            self.algorithms.all,
        )
    }

    /// A version 1 certificate has no extensions; its dates and the signature of a root are all there is to check.
    fn check_signed_by_a_root(&self, trust: &Trust, leaf: &Certificate, now: UnixTime) -> TlsResult<()> {
        check_dates(leaf, now)?;
        let signed = leaf.tbs_certificate.to_der().map_err(|_| CertificateError::BadEncoding)?;
        let signature = leaf.signature.as_bytes().ok_or(CertificateError::BadEncoding)?;
        let is_signer = |root: &Certificate| {
            let key = &root.tbs_certificate.subject_public_key_info;
            let mut fitting = self.algorithms.all.iter().filter(|algorithm| {
                is_same(&key.algorithm, &algorithm.public_key_alg_id())
                    && is_same(&leaf.signature_algorithm, &algorithm.signature_alg_id())
            });
            root.tbs_certificate.subject == leaf.tbs_certificate.issuer
                && may_sign(root)
                && check_dates(root, now).is_ok()
                && fitting.any(|a| {
                    a.verify_signature(key.subject_public_key.raw_bytes(), &signed, signature).is_ok()
                })
        };
        match trust.roots.iter().filter_map(|root| parse(root).ok()).any(|root| is_signer(&root)) {
            true => Ok(()),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        links: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> TlsResult<ServerCertVerified> {
        if let Some(trust) = &self.trust {
            self.check_chain(trust, leaf, links, now)?;
        }
        if self.checks_name {
            check_name(leaf, host)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    // The handshake's own signature is checked in every mode: without that, a server that merely shows somebody
    // else's certificate would pass SCRAM's channel binding.

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> TlsResult<HandshakeSignatureValid> {
        let Some(key) = key_of_version_1(cert) else {
            return crypto::verify_tls12_signature(message, cert, signed, &self.algorithms);
        };
        let of_scheme = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        let is_valid = of_scheme.is_some_and(|(_, algorithms)| {
            algorithms.iter().any(|algorithm| {
                is_same(&key.algorithm, &algorithm.public_key_alg_id())
                    && algorithm
                        .verify_signature(key.subject_public_key.raw_bytes(), message, signed.signature())
                        .is_ok()
            })
        });
        match is_valid {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> TlsResult<HandshakeSignatureValid> {
        let Some(key) = key_of_version_1(cert) else {
            return crypto::verify_tls13_signature(message, cert, signed, &self.algorithms);
        };
        let key = key.to_der().map_err(|_| CertificateError::BadEncoding)?;
        let key = SubjectPublicKeyInfoDer::from(key);
        crypto::verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The host name must be in the certificate; in its common name only where it lists no name of that sort.
fn check_name(leaf: &CertificateDer<'_>, host: &ServerName<'_>) -> TlsResult<()> {
    let parsed = parse(leaf)?;
    let extensions = parsed.tbs_certificate.extensions.iter().flatten();
    let names = extensions
        .filter(|extension| extension.extn_id == ID_CE_SUBJECT_ALT_NAME)
        .filter_map(|extension| SubjectAltName::from_der(extension.extn_value.as_bytes()).ok())
        .flat_map(|names| names.0);
    let is_ip = matches!(host, ServerName::IpAddress(_));
    let mut of_that_sort = names.filter(|name| match name {
        GeneralName::IpAddress(_) => is_ip,
        GeneralName::DnsName(_) => !is_ip,
        _ => false,
    });
    if of_that_sort.next().is_some() {
        return verify_server_name(&ParsedCertificate::try_from(leaf)?, host);
    }
    match common_name(&parsed).is_some_and(|name| is_name_of(&name, &host.to_str())) {
        true => Ok(()),
        false => Err(CertificateError::NotValidForName.into()),
    }
}

fn common_name(cert: &Certificate) -> Option<String> {
    let mut parts = cert.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter());
    let value = &parts.find(|part| part.oid == COMMON_NAME)?.value;
    String::from_utf8(value.value().to_vec()).ok()
}

/// `*.` stands for exactly one label.
fn is_name_of(pattern: &str, host: &str) -> bool {
    let covers = |(label, rest): (&str, &str)| {
        !label.is_empty()
            && pattern.strip_prefix("*.").is_some_and(|pattern| pattern.eq_ignore_ascii_case(rest))
    };
    pattern.eq_ignore_ascii_case(host) || host.split_once('.').is_some_and(covers)
}

fn parse(cert: &CertificateDer<'_>) -> TlsResult<Certificate> {
    Certificate::from_der(cert).map_err(|_| CertificateError::BadEncoding.into())
}

fn is_self_signed(cert: &Certificate) -> bool {
    cert.tbs_certificate.subject == cert.tbs_certificate.issuer
}

/// Version 1 has no way to say that a certificate may sign others, so that all of them may.
fn may_sign(root: &Certificate) -> bool {
    let constraints = root.tbs_certificate.get::<BasicConstraints>();
    root.tbs_certificate.version == Version::V1
        || constraints.is_ok_and(|found| found.is_some_and(|(_, c)| c.ca))
}

fn check_dates(cert: &Certificate, now: UnixTime) -> TlsResult<()> {
    let validity = &cert.tbs_certificate.validity;
    let now = now.as_secs();
    if now < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

fn key_of_version_1(cert: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoOwned> {
    let cert = parse(cert).ok().filter(|cert| cert.tbs_certificate.version == Version::V1)?;
    Some(cert.tbs_certificate.subject_public_key_info)
}

/// rustls keeps the content of an `AlgorithmIdentifier` without its two bytes of header.
fn is_same(owned: &AlgorithmIdentifierOwned, known: &AlgorithmIdentifier) -> bool {
    owned.to_der().is_ok_and(|der| der.get(2..) == Some(known.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::is_name_of;

    #[test]
    fn common_name_covers_hosts_as_in_libpq() {
        for (pattern, host, expected) in [
            ("db.example", "DB.example", true),
            ("*.example.org", "db.example.org", true),
            ("*.example.org", "a.db.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.example.org", ".example.org", false),
            ("*", "db", false),
            ("db.*", "db.example", false),
            ("10.0.0.1", "10.0.0.1", true),
            ("db.example\0.evil", "db.example", false),
        ] {
            assert_eq!(is_name_of(pattern, host), expected, "{pattern} {host}");
        }
    }
}

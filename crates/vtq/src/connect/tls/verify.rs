//! Whom to believe: libpq's rules for the server's certificate.
//!
//! rustls alone is stricter than OpenSSL in three ways that certificates made by the recipes of the PostgreSQL
//! manual run into. They are accepted here as psql accepts them: a self-signed certificate that is its own root, a
//! certificate of X.509 version 1, and a host name that stands in the common name only.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{self, CryptoProvider};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::der::oid::db::rfc5280::ID_CE_SUBJECT_ALT_NAME;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::spki::AlgorithmIdentifierOwned;

use super::files::Roots;
use crate::error::{Error, ErrorKind, Result};

type TlsResult<T> = Result<T, rustls::Error>;

#[derive(Debug)]
pub(super) struct Verifier {
    /// None: anybody may answer.
    trust: Option<Trust>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
struct Trust {
    anchors: RootCertStore,
    /// Certificates in the file that are no roots: links on the way to one, as for OpenSSL.
    links: Vec<CertificateDer<'static>>,
    roots: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub(super) fn new(roots: Option<Roots>, checks_name: bool, provider: Arc<CryptoProvider>) -> Result<Self> {
        let trust = roots.map(Trust::new).transpose()?;
        Ok(Self { trust, checks_name, provider })
    }

    fn is_trusted(&self, trust: &Trust, chain: Chain<'_>, now: UnixTime) -> TlsResult<()> {
        let leaf = parse(chain.leaf)?;
        if is_self_signed(&leaf) && trust.roots.iter().any(|root| root == chain.leaf) {
            return is_valid_at(&leaf, now);
        }
        if leaf.tbs_certificate.version == Version::V1 {
            return self.is_signed_by_a_root(trust, &leaf).and_then(|()| is_valid_at(&leaf, now));
        }
        let links: Vec<_> = chain.links.iter().chain(&trust.links).cloned().collect();
        let leaf = ParsedCertificate::try_from(chain.leaf)?;
        verify_server_cert_signed_by_trust_anchor(
            &leaf,
            &trust.anchors,
            &links,
            now,
            self.provider.signature_verification_algorithms.all,
        )
    }

    /// A version 1 certificate has no extensions; all there is to check is the signature of its issuer.
    fn is_signed_by_a_root(&self, trust: &Trust, leaf: &Certificate) -> TlsResult<()> {
        let encoded = leaf.tbs_certificate.to_der().map_err(|_| CertificateError::BadEncoding)?;
        let signature = leaf.signature.as_bytes().ok_or(CertificateError::BadEncoding)?;
        let is_signer = |root: &Certificate| {
            root.tbs_certificate.subject == leaf.tbs_certificate.issuer
                && self.key_algorithms(root).any(|(algorithm, key)| {
                    is_same(&leaf.signature_algorithm, algorithm.signature_alg_id().as_ref())
                        && algorithm.verify_signature(key, &encoded, signature).is_ok()
                })
        };
        match trust.roots.iter().filter_map(|root| parse(root).ok()).any(|root| is_signer(&root)) {
            true => Ok(()),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }
}

//! Certificates made on the spot.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// A certificate and its key, as PEM.
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

/// Signs certificates.
pub(crate) struct Authority {
    pub(crate) root: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = authority_params(name);
        let root = params.self_signed(&key).unwrap().pem();
        Self { root, issuer: Issuer::new(params, key) }
    }

    /// Makes an authority that this one vouches for.
    pub(crate) fn intermediate(&self, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = authority_params(name);
        let root = params.signed_by(&key, &self.issuer).unwrap().pem();
        Self { root, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn sign(&self, name: &str, hosts: &[&str]) -> Pair {
        let key = KeyPair::generate().unwrap();
        let cert = params(name, hosts).signed_by(&key, &self.issuer).unwrap().pem();
        Pair { cert, key: key.serialize_pem() }
    }

    pub(crate) fn sign_expired(&self, name: &str, hosts: &[&str]) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = params(name, hosts);
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        Pair { cert: params.signed_by(&key, &self.issuer).unwrap().pem(), key: key.serialize_pem() }
    }
}

pub(crate) fn self_signed(name: &str, hosts: &[&str]) -> Pair {
    let key = KeyPair::generate().unwrap();
    let cert = params(name, hosts).self_signed(&key).unwrap().pem();
    Pair { cert, key: key.serialize_pem() }
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = params(name, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn params(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.use_authority_key_identifier_extension = true;
    params
}

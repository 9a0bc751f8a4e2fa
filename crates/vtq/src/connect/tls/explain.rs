//! TLS failures in plain words.

use std::error::Error as StdError;
use std::io;

use rustls::CertificateError;

use super::{Mode, TlsSettings};

/// Says what is wrong, if TLS is to blame for this failure.
pub(crate) fn explain(error: &tokio_postgres::Error, tls: &TlsSettings, host: &str) -> Option<String> {
    let source = error.source()?;
    if let Some(rustls) = source.downcast_ref::<io::Error>().and_then(inside) {
        return Some(in_words(rustls, tls, host));
    }
    let is_refusal = source.to_string() == "server does not support TLS";
    is_refusal.then(|| format!("the server does not support TLS, but sslmode is {}", tls.mode.name()))
}

fn inside(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn in_words(error: &rustls::Error, tls: &TlsSettings, host: &str) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => in_words_certificate(why, tls, host),
        rustls::Error::AlertReceived(alert) => format!(
            "the server broke off the TLS handshake ({alert:?}): it may want another client certificate"
        ),
        rustls::Error::InvalidMessage(_) => "what answers there does not speak TLS".into(),
        other => format!("the TLS handshake failed: {other}"),
    }
}

fn in_words_certificate(why: &CertificateError, tls: &TlsSettings, host: &str) -> String {
    let mode = tls.mode.name();
    match why {
        CertificateError::UnknownIssuer => format!(
            "the server's certificate is not signed by a root certificate in {}{}",
            tls.roots_name(),
            if tls.mode == Mode::Require { ", which sslmode=require then checks too" } else { "" }
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the server's certificate is not for the host `{host}`, but sslmode is {mode}")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: check the clocks".into()
        }
        CertificateError::BadEncoding => "the server's certificate is damaged".into(),
        other => format!("the server's certificate is refused: {other}"),
    }
}

//! The environment of libpq. Only [`ConnectOptions::with_env`](super::ConnectOptions::with_env) comes here.
//!
//! <https://www.postgresql.org/docs/current/libpq-envars.html>

use super::params::Params;
use crate::error::{Error, Result};

/// Which variable gives which parameter.
const VARIABLES: [(&str, &str); 25] = [
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGPORT", "port"),
    ("PGDATABASE", "dbname"),
    ("PGUSER", "user"),
    ("PGPASSWORD", "password"),
    ("PGPASSFILE", "passfile"),
    ("PGOPTIONS", "options"),
    ("PGAPPNAME", "application_name"),
    ("PGCONNECT_TIMEOUT", "connect_timeout"),
    ("PGTARGETSESSIONATTRS", "target_session_attrs"),
    ("PGLOADBALANCEHOSTS", "load_balance_hosts"),
    ("PGCHANNELBINDING", "channel_binding"),
    ("PGGSSENCMODE", "gssencmode"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLNEGOTIATION", "sslnegotiation"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGSSLCERTMODE", "sslcertmode"),
    ("PGSSLSNI", "sslsni"),
    ("PGSSLMINPROTOCOLVERSION", "ssl_min_protocol_version"),
    ("PGSSLMAXPROTOCOLVERSION", "ssl_max_protocol_version"),
    // Each changes who may answer or who is let in: ignoring it would connect to something else, or less safely.
    ("PGSERVICE", "service"),
    ("PGREQUIREAUTH", "require_auth"),
];
const UNSUPPORTED: [&str; 3] = ["PGREQUIREPEER", "PGSSLCRL", "PGSSLCRLDIR"];

/// Reads the variables through `lookup`, which tests replace.
pub(crate) fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Params> {
    let mut params = Params::default();
    for (variable, name) in VARIABLES {
        let Some(value) = lookup(variable).filter(|value| !value.is_empty()) else { continue };
        params.set(name, value).map_err(|_| unsupported(variable))?;
    }
    match UNSUPPORTED.into_iter().find(|variable| lookup(variable).is_some_and(|value| !value.is_empty())) {
        Some(variable) => Err(unsupported(variable)),
        None => Ok(params),
    }
}

fn unsupported(variable: &str) -> Error {
    Error::config(format!("environment variable {variable} is not supported: unset it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_pairs(pairs: &[(&str, &str)]) -> Result<Params> {
        read(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn variables_become_parameters() {
        let params = read_pairs(&[("PGHOST", "a,b"), ("PGSSLMODE", "verify-ca"), ("PGUSER", "")]).unwrap();

        assert_eq!(params.get("host"), Some("a,b"));
        assert_eq!(params.get("sslmode"), Some("verify-ca"));
        assert_eq!(params.get("user"), None);
    }

    #[test]
    fn unsupported_variables_are_refused_by_name() {
        for variable in ["PGSERVICE", "PGREQUIREAUTH", "PGREQUIREPEER", "PGSSLCRL", "PGSSLCRLDIR"] {
            let error = read_pairs(&[(variable, "x")]).err().unwrap();

            assert_eq!(
                error.to_string(),
                format!("environment variable {variable} is not supported: unset it")
            );
            assert!(read_pairs(&[(variable, "")]).is_ok());
        }
    }
}

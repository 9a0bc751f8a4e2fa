//! The connection parameters of libpq, as text: which there are, and which one a source gives.
//!
//! <https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS>

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// The parameters that can be given.
const KNOWN: [&str; 30] = [
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "dbname",
    "fallback_application_name",
    "gssencmode",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "load_balance_hosts",
    "options",
    "passfile",
    "password",
    "port",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// Parameters of libpq that would be wrong to ignore and are not carried out here.
const UNSUPPORTED: [&str; 18] = [
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    "max_protocol_version",
    "min_protocol_version",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_issuer",
    "oauth_scope",
    "replication",
    "require_auth",
    "requirepeer",
    "service",
    "servicefile",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslpassword",
];

/// Parameters by name. An empty value counts as absent, as in libpq, but keeps a weaker source from filling it.
#[derive(Clone, Default)]
pub(crate) struct Params(BTreeMap<&'static str, String>);

impl Params {
    /// Sets a parameter, or refuses its name.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) -> Result<()> {
        // tokio-postgres's name for it, which URLs written for that driver use.
        let name = if name == "keepalives_retries" { "keepalives_count" } else { name };
        if let Ok(position) = KNOWN.binary_search(&name) {
            self.0.insert(KNOWN[position], value.into());
            return Ok(());
        }
        if UNSUPPORTED.contains(&name) {
            return Err(Error::config(format!("connection parameter `{name}` is not supported")));
        }
        Err(Error::config(format!("{}; known are {}", unknown(name), KNOWN.join(", "))))
    }

    /// Returns a parameter that has a value.
    pub(crate) fn get(&self, name: &'static str) -> Option<&str> {
        debug_assert!(KNOWN.contains(&name), "{name} is not in the list");
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Takes from `weaker` what is not given here.
    pub(crate) fn fill_from(&mut self, weaker: Params) {
        for (name, value) in weaker.0 {
            self.0.entry(name).or_insert(value);
        }
    }
}

/// A mistyped URL may hold a piece of a password where a name should be, so only what looks like one is shown.
fn unknown(name: &str) -> String {
    let is_name = name.len() <= 40 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    match is_name && !name.is_empty() {
        true => format!("unknown connection parameter `{name}`"),
        false => "unknown connection parameter".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_apart() {
        assert!(KNOWN.is_sorted());
        assert!(UNSUPPORTED.is_sorted());
        assert!(UNSUPPORTED.iter().all(|name| !KNOWN.contains(name)));
    }

    #[test]
    fn unknown_parameter_is_named_with_the_list() {
        let text = Params::default().set("sslmod", "require").unwrap_err().to_string();

        assert!(
            text.starts_with("unknown connection parameter `sslmod`; known are application_name,"),
            "{text}"
        );
    }

    #[test]
    fn unknown_parameter_that_may_be_a_password_is_not_named() {
        let text = Params::default().set("P4SSW0RD@host", "x").unwrap_err().to_string();

        assert!(!text.contains("P4SS"), "{text}");
    }

    #[test]
    fn empty_value_is_absent_and_still_wins() {
        let mut strong = Params::default();
        let mut weak = Params::default();
        strong.set("host", "").unwrap();
        weak.set("host", "elsewhere").unwrap();
        weak.set("user", "ann").unwrap();

        strong.fill_from(weak);

        assert_eq!(strong.get("host"), None);
        assert_eq!(strong.get("user"), Some("ann"));
    }
}

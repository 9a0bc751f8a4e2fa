//! The server's settings, as a file beside `postgresql.conf`.

use std::path::Path;

use crate::Error;

/// Included from `postgresql.conf`, and written anew at each start: only here do `port` and folder change.
pub(crate) const FILE: &str = "vtq-dev.conf";

/// Losing a throwaway cluster in a power cut is no loss, and a test suite syncs a lot. `synchronous_commit` stays
/// on, so that code which turns it off is seen to do so.
const DEFAULTS: [(&str, &str); 8] = [
    ("listen_addresses", "127.0.0.1"),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("shared_buffers", "32MB"),
    ("max_connections", "200"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("cluster_name", "vtq-dev"),
];

/// What `durable` takes back from the defaults.
const DURABLE: [(&str, &str); 2] = [("fsync", "on"), ("full_page_writes", "on")];

/// Names and values, later ones winning.
#[derive(Debug, Clone)]
pub(crate) struct Settings(Vec<(String, String)>);

impl Default for Settings {
    fn default() -> Self {
        Self(DEFAULTS.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }
}

impl Settings {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn make_durable(&mut self) {
        for (name, value) in DURABLE {
            self.set(name, value);
        }
    }

    /// The text of the file for a server whose socket is in `socket_dir`.
    pub(crate) fn render(&self, socket_dir: &Path, port: u16) -> Result<String, Error> {
        let socket_dir = socket_dir.to_string_lossy();
        let port = port.to_string();
        // Last, so that they win: the cluster's urls are made of them.
        let fixed = [
            ("port", port.as_str()),
            ("unix_socket_directories", socket_dir.as_ref()),
            ("unix_socket_permissions", "0700"),
        ];
        let chosen = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        chosen.chain(fixed).map(|(name, value)| line(name, value)).collect()
    }
}

fn line(name: &str, value: &str) -> Result<String, Error> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(Error::new(format!("setting {name:?}: a name has letters, digits, `_` and `.` only")));
    }
    if value.contains(['\n', '\r', '\0']) {
        return Err(Error::new(format!("setting `{name}`: {value:?} spans more than one line")));
    }
    // Inside quotes the server reads backslash escapes too.
    Ok(format!("{name} = '{}'\n", value.replace('\\', r"\\").replace('\'', "''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_settings_come_last_and_so_win() {
        let mut settings = Settings::default();
        settings.make_durable();
        settings.set("work_mem", "8MB");

        let text = settings.render(Path::new("/tmp/it's"), 5433).unwrap();

        assert!(text.starts_with("listen_addresses = '127.0.0.1'\n"), "{text}");
        assert!(text.rfind("fsync = 'on'") > text.rfind("fsync = 'off'"), "{text}");
        assert!(text.contains("work_mem = '8MB'\nport = '5433'\n"), "{text}");
        assert!(text.contains("unix_socket_directories = '/tmp/it''s'\n"), "{text}");
    }

    #[test]
    fn what_would_break_the_file_is_refused() {
        assert_eq!(
            line("work mem", "1").unwrap_err().to_string(),
            "setting \"work mem\": a name has letters, digits, `_` and `.` only"
        );
        assert_eq!(
            line("work_mem", "1\nfsync = on").unwrap_err().to_string(),
            "setting `work_mem`: \"1\\nfsync = on\" spans more than one line"
        );
    }
}

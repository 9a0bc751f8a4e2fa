//! The one error type.

use std::fmt;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a cluster could not be found, started, stopped or removed.
///
/// `Display` is one line that names the thing; the cause, such as the last lines of the server's log, is its
/// `source()`. `Debug` prints both, so that an `expect` in a test shows all there is to know.
pub struct Error(Box<Repr>);

struct Repr {
    message: String,
    source: Option<Source>,
    not_installed: bool,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Repr { message: message.into(), source: None, not_installed: false }))
    }

    pub(crate) fn caused(message: impl Into<String>, source: impl Into<Source>) -> Self {
        Self(Box::new(Repr { message: message.into(), source: Some(source.into()), not_installed: false }))
    }

    pub(crate) fn not_installed(message: impl Into<String>) -> Self {
        Self(Box::new(Repr { message: message.into(), source: None, not_installed: true }))
    }

    /// Whether no usable PostgreSQL is installed; the message then holds the command that installs one.
    pub fn is_not_installed(&self) -> bool {
        self.0.not_installed
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn display_leaves_the_cause_to_source() {
        let error = Error::caused("postgres did not start", "FATAL: no");

        assert_eq!(error.to_string(), "postgres did not start");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("FATAL: no"));
        assert_eq!(format!("{error:?}"), "postgres did not start: FATAL: no");
    }
}

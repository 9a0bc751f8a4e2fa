//! The error of every fallible call; the only file that knows SQLSTATE codes.
//!
//! Nothing that Postgres or a driver says is kept as it came. DETAIL, HINT and CONTEXT quote row data, and
//! conversion errors quote the value, so a payload could end up in a log: what is kept is the severity, the
//! primary message and the code, as text.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// What every fallible call of the library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Describes why a call failed.
///
/// `Display` names the thing and not the cause; [`source`](StdError::source) gives the cause. Neither holds a
/// password, nor the data of a message.
pub struct Error(Box<Inner>);

/// What a caller can tell errors apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument breaks a rule; the text names the argument, the value and the rule.
    InvalidArgument,
    /// The database cannot store the message: not JSON, too large, a NUL character, a number out of range.
    InvalidPayload,
    /// The connection options are wrong; trying again cannot help.
    InvalidConfig,
    /// No queue has this name.
    QueueNotFound,
    /// A queue of this name exists with other options.
    QueueExists,
    /// No message has this id where one is needed.
    MessageNotFound,
    /// No schedule has this name.
    ScheduleNotFound,
    /// The database has no vtq schema, or an older one: run `vtq migrate`.
    NotMigrated,
    /// The schema was installed by a newer vtq than this one.
    NewerSchema,
    /// A table of the queue is gone; creating the queue again repairs it.
    TableMissing,
    /// The state of the queue or the message does not allow this.
    Refused,
    /// Another message has the unique key; the text names it.
    KeyTaken,
    /// The role lacks a privilege, or the server did not let it in.
    PermissionDenied,
    /// A time limit ran out; the text says which step and which limit. The statement may still have run.
    Timeout,
    /// The database is away, restarting, read-only after a failover, or the connection broke.
    Unavailable,
    /// TLS could not be set up as asked.
    Tls,
    /// Any other answer of the database.
    Database,
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    code: Option<String>,
    index: Option<usize>,
    retryable: bool,
    closed: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Tells what went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Tells whether the same call may succeed later with nothing changed by the caller.
    ///
    /// A statement cut short by a lost connection or a timeout may have run: repeat only what may happen twice.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// Tells whether the connection that carried the call is gone.
    pub fn is_closed(&self) -> bool {
        self.0.closed
    }

    /// Returns the SQLSTATE, if the database answered with one.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// Returns the position, from 0, of the element of a batch that is to blame.
    pub fn index(&self) -> Option<usize> {
        self.0.index
    }

    /// Tells whether the server's access rules, rather than a wrong password, kept the user out.
    pub(crate) fn is_barred(&self) -> bool {
        self.code() == Some("28000")
    }

    /// Tells whether the statement called a function that does not exist.
    pub(crate) fn is_missing_function(&self) -> bool {
        self.code() == Some("42883")
    }

    /// Tells whether an error before this one has ended the transaction.
    pub(crate) fn is_in_failed_transaction(&self) -> bool {
        self.code() == Some("25P02")
    }

    /// What a missing function means where it is a queue's own, in a transaction that can be asked nothing more.
    pub(crate) fn without_queue(self, what: &str) -> Self {
        let sentence = format!("cannot {what}: the queue does not exist, or lacks its own functions");
        Self(Box::new(Inner { kind: ErrorKind::QueueNotFound, message: sentence, ..*self.0 }))
    }

    /// Makes an error of any kind; `message` is a sentence in lower case with no full stop.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            code: None,
            index: None,
            retryable: matches!(kind, ErrorKind::Unavailable | ErrorKind::Timeout),
            closed: false,
            source: None,
        }))
    }

    /// An argument that breaks a rule; the sentence names the argument, the value and the rule.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// A payload that cannot be sent or read.
    pub(crate) fn payload(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidPayload, message)
    }

    /// Connection options that cannot work.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidConfig, message)
    }

    /// A database that cannot be reached at the moment.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorKind::Unavailable, message);
        error.0.closed = true;
        error
    }

    /// A step that took longer than its limit; `step` as in `` send to `orders` ``.
    pub(crate) fn timeout(step: &str, limit: Duration) -> Self {
        Self::new(ErrorKind::Timeout, format!("{step}: no answer within {limit:?}"))
    }

    /// A failure reported by the driver; `what` completes the sentence "cannot ...".
    ///
    /// A refusal worded by our own SQL becomes the text of the error; anything else becomes its cause.
    pub(crate) fn db(what: impl AsRef<str>, error: &tokio_postgres::Error) -> Self {
        let what = what.as_ref();
        let Some(answer) = error.as_db_error() else { return Self::driver(what, error) };
        let code = answer.code().code();
        let kind = kind_of(code, answer.message());
        let message = match kind {
            _ if is_worded_by_us(code) => answer.message().to_owned(),
            ErrorKind::NotMigrated => {
                "the database has no vtq schema, or an older one: run `vtq migrate`".into()
            }
            _ => format!("cannot {what}"),
        };
        let mut made = Self::new(kind, message);
        made.0.code = Some(code.to_owned());
        made.0.retryable |= kind == ErrorKind::Database && is_passing(code);
        made.0.closed = ends_the_connection(code);
        if !is_worded_by_us(code) {
            made.0.source = Some(Box::new(Cause::of_answer(answer)));
        }
        made
    }

    /// A failure on this side of the wire: a broken connection, or a value that could not be converted.
    fn driver(what: &str, error: &tokio_postgres::Error) -> Self {
        let kind = match error.to_string().as_str() {
            "error performing TLS handshake" if !is_broken_pipe(error) => ErrorKind::Tls,
            "authentication error" => ErrorKind::PermissionDenied,
            "invalid configuration" | "invalid connection string" => ErrorKind::InvalidConfig,
            text if is_conversion(text) => ErrorKind::InvalidPayload,
            text if text.starts_with("query returned") || text.starts_with("invalid column") => {
                ErrorKind::Database
            }
            _ => ErrorKind::Unavailable,
        };
        let mut made = Self::new(kind, format!("cannot {what}"));
        made.0.closed = kind == ErrorKind::Unavailable;
        made.0.source = Some(Box::new(Cause::of_driver(error)));
        made
    }

    /// Adds a cause. It must not quote a payload or a password.
    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Names the element of a batch that is to blame, counted from 0.
    pub(crate) fn at(mut self, index: usize) -> Self {
        self.0.index = Some(index);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.0.kind).field("message", &self.0.message);
        if let Some(code) = &self.0.code {
            debug.field("code", code);
        }
        if let Some(index) = self.0.index {
            debug.field("index", &index);
        }
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// A cause as text: all that is left of an error that might quote data.
struct Cause {
    text: String,
    next: Option<Box<Cause>>,
}

impl Cause {
    fn of_answer(answer: &tokio_postgres::error::DbError) -> Self {
        let code = answer.code().code();
        let message = without_value(code, answer.message());
        let text = format!("{}: {message} (SQLSTATE {code})", answer.severity());
        Self { text, next: None }
    }

    fn of_driver(error: &tokio_postgres::Error) -> Self {
        let text = error.to_string();
        if is_conversion(&text) {
            return Self { text, next: None };
        }
        let next = error.source().map(|e| Box::new(Self { text: e.to_string(), next: None }));
        Self { text, next }
    }
}

/// Takes out the value that a data exception quotes, which may be a payload's:
/// `invalid input syntax for type integer: "<value>"`, `value "<value>" is out of range for type integer`.
fn without_value(code: &str, message: &str) -> String {
    if !code.starts_with("22") {
        return message.to_owned();
    }
    let message = message.split(": \"").next().unwrap_or_default();
    match (message.find('"'), message.rfind('"')) {
        (Some(from), Some(to)) if from < to => format!("{}…{}", &message[..=from], &message[to..]),
        _ => message.to_owned(),
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.next.as_deref().map(|next| next as _)
    }
}

/// Tells whether the other side hung up, as a server does that is going down.
fn is_broken_pipe(error: &tokio_postgres::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|e| {
        matches!(e.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | TimedOut | UnexpectedEof)
    })
}

/// The driver's texts for a value that did not convert; what lies below them quotes the value.
fn is_conversion(text: &str) -> bool {
    text.starts_with("error serializing parameter") || text.starts_with("error deserializing column")
}

/// Codes under which `sql/functions` raises whole sentences. 22023 is also used by Postgres itself, whose
/// sentences under it are about an argument too.
fn is_worded_by_us(code: &str) -> bool {
    code == "22023" || code.starts_with("VT")
}

fn kind_of(code: &str, message: &str) -> ErrorKind {
    match code {
        "VT001" => ErrorKind::QueueNotFound,
        "VT002" => ErrorKind::QueueExists,
        "VT003" => ErrorKind::MessageNotFound,
        "VT004" => ErrorKind::TableMissing,
        "VT005" => ErrorKind::Refused,
        "VT006" => ErrorKind::ScheduleNotFound,
        "VT007" => ErrorKind::KeyTaken,
        "22023" => ErrorKind::InvalidArgument,
        // Not JSON · U+0000 · number out of range · NUL byte or not UTF-8 · jsonb's own limits · nested too deep.
        "22P02" | "22P05" | "22003" | "22021" | "54000" | "54001" => ErrorKind::InvalidPayload,
        "42501" | "28000" | "28P01" => ErrorKind::PermissionDenied,
        // PgBouncer says everything under this code, wrong passwords too.
        "08P01" if message.contains("authentication failed") => ErrorKind::PermissionDenied,
        "3D000" => ErrorKind::InvalidConfig,
        // A schema of ours, its functions or its catalogue are missing; a queue's own table is VT004's matter.
        "3F000" if message.contains("vtq") => ErrorKind::NotMigrated,
        "42883" if message.contains("vtq.") => ErrorKind::NotMigrated,
        "42P01" if message.contains("vtq._") => ErrorKind::NotMigrated,
        "42P01" if message.contains("vtq.") => ErrorKind::TableMissing,
        "57014" => ErrorKind::Timeout,
        _ if is_away(code) => ErrorKind::Unavailable,
        _ => ErrorKind::Database,
    }
}

/// The server is restarting, full, or a standby. Class 08 is also what PgBouncer says of all its troubles.
fn is_away(code: &str) -> bool {
    code.starts_with("08")
        || matches!(code, "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "53300" | "25006")
}

/// Serialization failure, deadlock, lock not available, and class 53: out of disk, memory or connections.
fn is_passing(code: &str) -> bool {
    matches!(code, "40001" | "40P01" | "55P03") || code.starts_with("53")
}

fn ends_the_connection(code: &str) -> bool {
    is_away(code) && !matches!(code, "25006")
}

#[cfg(test)]
mod tests;

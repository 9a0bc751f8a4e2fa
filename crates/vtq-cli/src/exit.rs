//! What the exit code says.

use std::process::ExitCode;

/// How a command ended, apart from errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked: 0.
    Done,
    /// There was nothing to do or to show: 1.
    Nothing,
    /// It failed: 2.
    Failed,
    /// A signal ended it: 130.
    Interrupted,
    /// What only this command knows, such as a worker that had to leave messages behind.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::Nothing => Self::from(1),
            Exit::Failed => Self::from(2),
            Exit::Interrupted => Self::from(130),
            Exit::Code(code) => Self::from(code),
        }
    }
}

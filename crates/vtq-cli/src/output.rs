//! What a command prints: results on standard output, remarks on standard error, JSON or text.

mod length;
mod progress;
mod table;

use std::fmt;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

pub(crate) use self::length::{ago, brief, millis};
pub(crate) use self::progress::Progress;
pub(crate) use self::table::{Cell, Table, Tone, clean, instant};
use crate::args::{Color, Global};

/// Where results go, and in which form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
    is_quiet: bool,
    is_coloured: bool,
}

/// Whoever reads our output has had enough, as `head` has. That is a success.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads the output")
    }
}

impl std::error::Error for Closed {}

impl Output {
    /// Takes the form from the options.
    pub(crate) fn of(global: &Global) -> Self {
        Self {
            is_json: global.json,
            is_quiet: global.quiet,
            is_coloured: is_coloured(global.color, io::stdout().is_terminal()),
        }
    }

    /// Tells whether JSON was asked for.
    pub(crate) fn is_json(self) -> bool {
        self.is_json
    }

    /// Prints a JSON document: on a terminal spread out, elsewhere on one line.
    pub(crate) fn json(self, document: &impl Serialize) -> anyhow::Result<()> {
        let text = match io::stdout().is_terminal() {
            true => serde_json::to_string_pretty(document)?,
            false => serde_json::to_string(document)?,
        };
        self.line(&text)
    }

    /// Prints a line of results.
    pub(crate) fn line(self, text: &str) -> anyhow::Result<()> {
        print(&format!("{text}\n"))
    }

    /// Prints a table.
    pub(crate) fn table(self, table: Table) -> anyhow::Result<()> {
        self.line(&table.render(self.is_coloured))
    }

    /// Says what was done, unless quiet; where JSON was asked for, the document says it.
    pub(crate) fn done(self, text: &str, document: &impl Serialize) -> anyhow::Result<()> {
        match (self.is_json, self.is_quiet) {
            (true, _) => self.json(document),
            (false, false) => self.line(text),
            (false, true) => Ok(()),
        }
    }

    /// Says what was done, or remarks that nothing was; the document says either.
    pub(crate) fn done_or_remark(
        self,
        is_done: bool,
        text: &str,
        remark: &str,
        document: &impl Serialize,
    ) -> anyhow::Result<()> {
        if is_done || self.is_json {
            self.done(text, document)?;
        }
        if !is_done {
            self.remark(remark);
        }
        Ok(())
    }

    /// Makes a remark on standard error, unless quiet: why there is nothing, or what to do next.
    pub(crate) fn remark(self, text: &str) {
        if !self.is_quiet {
            complain(text);
        }
    }

    /// Starts to show progress, if there is a terminal to show it on.
    pub(crate) fn progress(self, what: &'static str, total: Option<u64>) -> Progress {
        Progress::start(what, total, self.shows_progress())
    }

    /// Tells whether there is a terminal to show progress on, and somebody who wants to see it.
    pub(crate) fn shows_progress(self) -> bool {
        !self.is_quiet && io::stderr().is_terminal()
    }
}

/// Prints to standard output as it is.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        Err(error) => Err(anyhow::Error::new(error).context("cannot write to standard output")),
    }
}

/// Prints one line to standard error, as this program.
pub(crate) fn complain(text: &str) {
    // There is nobody left to tell that it cannot be told.
    let _ = writeln!(io::stderr().lock(), "vtq: {text}");
}

/// Tells whether a stream is to be coloured.
pub(crate) fn is_coloured(when: Color, is_terminal: bool) -> bool {
    let refuses = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_terminal && !refuses,
    }
}

/// Asks a question on the terminal; `None` where there is none to ask on.
pub(crate) fn ask(question: &str) -> anyhow::Result<Option<bool>> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(None);
    }
    let _ = write!(io::stderr().lock(), "{question} [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
}

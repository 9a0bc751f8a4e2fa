//! What is seen while the demo runs: a bar on a terminal, a few plain lines elsewhere. All of it on standard error.

use std::cell::Cell;
use std::env;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use vtq::Metrics;

use crate::args::Global;
use crate::output::is_coloured;

/// Tells what happens.
#[derive(Debug)]
pub(super) struct Progress {
    /// Hidden unless standard error is a terminal.
    bar: ProgressBar,
    began: Cell<Instant>,
    is_quiet: bool,
    has_colour: bool,
}

impl Progress {
    /// Looks at what standard error is.
    pub(super) fn new(global: &Global) -> Self {
        let is_terminal =
            std::io::stderr().is_terminal() && env::var_os("TERM").is_none_or(|term| term != "dumb");
        let bar = if is_terminal && !global.quiet { ProgressBar::no_length() } else { ProgressBar::hidden() };
        Self {
            bar,
            began: Cell::new(Instant::now()),
            is_quiet: global.quiet,
            has_colour: is_coloured(global.color, is_terminal),
        }
    }

    /// Writes a line that stays, unless quiet.
    pub(super) fn say(&self, line: &str) {
        if !self.is_quiet {
            self.insist(line);
        }
    }

    /// Writes a line that stays, because it was asked for.
    pub(super) fn insist(&self, line: &str) {
        // Nobody may be there to read it; that is no reason to stop.
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{line}");
        });
    }

    /// Begins a step; on a terminal it is seen at once.
    pub(super) fn begin(&self, doing: &str) {
        self.began.set(Instant::now());
        self.bar.set_style(style("{spinner} {msg}"));
        self.bar.set_message(format!("{doing} ..."));
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// Ends a step: its line stays, with the time that it took.
    pub(super) fn done(&self, did: &str) {
        let took = self.began.get().elapsed().as_secs_f64();
        self.bar.disable_steady_tick();
        self.bar.set_message("");
        self.say(&format!("  {} {did} ({took:.1} s)", self.paint("32", "ok")));
    }

    /// Says that a worker is gone.
    pub(super) fn lost(&self, what: &str) {
        self.say(&format!("  {} {what}", self.paint("33", "!!")));
    }

    /// Shows the bar of messages to settle.
    pub(super) fn work(&self, total: u64) {
        let bar = if self.has_colour { "{bar:16.cyan/blue}" } else { "{bar:16}" };
        self.began.set(Instant::now());
        self.bar.set_length(total);
        self.bar
            .set_style(style(&format!("  {bar} {{pos}}/{{len}} settled{{wide_msg}}")).progress_chars("━╸─"));
    }

    /// Moves the bar to what the queue's metrics say.
    pub(super) fn show(&self, metrics: &Metrics) {
        let count = |count: Option<u64>| count.unwrap_or_default();
        self.bar.set_position(count(metrics.sent_total).saturating_sub(live(metrics)));
        let parts = [
            ("ready", count(metrics.ready)),
            ("in flight", count(metrics.in_flight)),
            ("waiting", count(metrics.delayed) + count(metrics.retrying) + count(metrics.waiting)),
            ("dead", count(metrics.dead)),
        ];
        let shown = parts.iter().filter(|(_, count)| *count > 0);
        self.bar.set_message(shown.map(|(state, count)| format!(" · {count} {state}")).collect::<String>());
    }

    /// Removes the bar or the unfinished step.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.has_colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

impl Drop for Progress {
    /// An error's line must not stand behind an unfinished step.
    fn drop(&mut self) {
        self.clear();
    }
}

/// Counts the messages that are still to be settled.
pub(super) fn live(metrics: &Metrics) -> u64 {
    let states = [
        metrics.ready,
        metrics.in_flight,
        metrics.delayed,
        metrics.retrying,
        metrics.waiting,
        metrics.exhausted,
        metrics.expired,
    ];
    states.into_iter().flatten().sum()
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are fixed and sound")
}

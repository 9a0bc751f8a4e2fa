//! Progress on the terminal.

use std::fmt;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// A bar where the total is known, a counter where it is not; nothing where there is no terminal.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn start(what: &'static str, total: Option<u64>, is_shown: bool) -> Self {
        if !is_shown {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        let template = match total {
            Some(_) => "{prefix} {bar:30} {human_pos}/{human_len} ({rate}, {eta} left)",
            None => "{prefix} {spinner} {human_pos} ({rate})",
        };
        let style = ProgressStyle::with_template(template).expect("the template is well-formed");
        bar.set_style(style.with_key("rate", |state: &ProgressState, text: &mut dyn fmt::Write| {
            // A progress bar that cannot be written is no reason to stop.
            let _ = write!(text, "{:.0}/s", state.per_sec());
        }));
        bar.set_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    /// Counts on.
    pub(crate) fn add(&self, number: u64) {
        self.0.inc(number);
    }

    /// Takes the bar off the terminal, so that results stand alone.
    pub(crate) fn finish(self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

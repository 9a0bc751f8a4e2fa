//! The line on the terminal while a run lasts.

use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::series::Second;
use crate::output::{Output, brief};

/// One line that is written over and over, on standard error; nothing where that is no terminal. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Live {
    bar: ProgressBar,
    duration: Option<Duration>,
    backlog: u64,
}

impl Live {
    /// Begins to show a run that is to last this long; `None`: until the backlog is handled.
    pub(super) fn start(output: Output, duration: Option<Duration>, backlog: u64) -> Self {
        if !output.shows_progress() {
            return Self { bar: ProgressBar::hidden(), duration, backlog };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        let style =
            ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is well-formed");
        bar.set_style(style);
        bar.set_message("the clock has started");
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, duration, backlog }
    }

    /// Shows the second that has just ended.
    pub(super) fn show(&self, second: Second) {
        let at = Duration::from_millis(second.at_ms);
        let seconds = at.as_secs_f64().round();
        let phase = match self.duration {
            None => format!("{seconds}s"),
            Some(duration) if at < duration => format!("{seconds}s of {}", brief(duration)),
            Some(_) => "the rest".into(),
        };
        let waiting = (second.sent + self.backlog).saturating_sub(second.handled);
        let mut line = format!(
            "{phase} · sent {}/s · handled {}/s · waiting {}",
            HumanCount(second.sent_per_second as u64),
            HumanCount(second.handled_per_second as u64),
            HumanCount(waiting)
        );
        if let (Some(p50), Some(p99)) = (second.latency_p50_us, second.latency_p99_us) {
            line.push_str(&format!(" · {:.1}/{:.1} ms", p50 as f64 / 1e3, p99 as f64 / 1e3));
        }
        if let Some(rows) = second.dead_rows {
            line.push_str(&format!(" · dead {}", HumanCount(rows)));
        }
        self.bar.set_message(line);
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

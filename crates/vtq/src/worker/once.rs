//! When a worker that runs once has done all there was.

use std::time::{Duration, Instant};

use super::fetch::Fetcher;

/// What is due so soon is waited for by a worker that runs once.
const A_MOMENT: Duration = Duration::from_millis(100);
/// For how long: what is due and yet not handed out is in somebody else's hands.
const LONGEST_END: Duration = Duration::from_secs(5);

impl Fetcher {
    /// For a worker that runs once, when a look found nothing and nothing runs: whether that is the end.
    ///
    /// The first such look may have swept away what others waited for, or have found no room under a limit since somebody
    /// else was reading; and one admission does not reach every lane. So there is a second look, and then one as long as
    /// the database knows of something that is due.
    pub(super) async fn is_through(&mut self) -> bool {
        let Some(since) = self.empty_since else {
            self.empty_since = Some(Instant::now());
            return false;
        };
        if since.elapsed() >= LONGEST_END {
            return true;
        }
        let answer = self.announce(Duration::ZERO).await;
        answer.is_some_and(|(due_in, _)| due_in.is_none_or(|due| due > A_MOMENT))
    }
}

//! The one line that says why a command failed, and what to do about it.

use std::time::Duration;

use vtq::{Error, ErrorKind, Exact};

use crate::args::Global;
use crate::output::clean;

/// A hint is worth this long a wait, and no longer.
const HINT_LIMIT: Duration = Duration::from_secs(3);

/// Words an error: each cause once, and the way out where there is a known one.
pub(crate) async fn sentence(global: &Global, error: &anyhow::Error) -> String {
    let mut text = chain(error);
    if let Some(hint) = hint(global, error).await {
        text.push_str(": ");
        text.push_str(&hint);
    }
    text
}

/// Joins an error with its causes. A cause that an error quotes by itself is not repeated.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = clean(&cause.to_string());
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

async fn hint(global: &Global, error: &anyhow::Error) -> Option<String> {
    let error = error.chain().find_map(|cause| cause.downcast_ref::<Error>())?;
    let text = error.to_string();
    // The sentences of sql/functions name the queue first, in quotes.
    let queue = text.strip_prefix("queue \"").and_then(|rest| rest.split('"').next());
    match (error.kind(), queue) {
        (ErrorKind::QueueNotFound, Some(queue)) => {
            let similar = tokio::time::timeout(HINT_LIMIT, similar(global, queue)).await.ok().flatten();
            let create = format!("create it with: vtq queue create {queue}");
            Some(match similar {
                Some(name) => format!("did you mean `{name}`? Or {create}"),
                None => create,
            })
        }
        (ErrorKind::QueueExists, Some(queue)) => Some(format!("change it with: vtq queue set {queue}")),
        (ErrorKind::TableMissing, Some(queue)) => {
            Some(format!("build it again with: vtq queue create {queue}"))
        }
        _ => None,
    }
}

/// The queue whose name is nearest to this one, if one is near.
async fn similar(global: &Global, name: &str) -> Option<String> {
    let queues = global.connect().await.ok()?.metrics_all(Exact::No).await.ok()?;
    let near = |other: &str| distance(name, other) <= 1 + name.len() / 6;
    queues
        .into_iter()
        .map(|queue| queue.queue)
        .filter(|other| near(other))
        .min_by_key(|other| distance(name, other))
}

/// How many letters to put in, take out, change or swap with their neighbour make one name of the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let is_same = one[i - 1] == other[j - 1];
            let mut least = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + usize::from(!is_same));
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn each_cause_is_said_once() {
        let error = anyhow!("the disk is full").context("cannot write: the disk is full");
        assert_eq!(chain(&error), "cannot write: the disk is full");

        let error = Err::<(), _>(anyhow!("b\nc")).context("a").unwrap_err();
        assert_eq!(chain(&error), "a: b c");
    }

    #[test]
    fn distance_counts_slips() {
        for (one, other, slips) in
            [("orders", "orders", 0), ("ordres", "orders", 1), ("order", "orders", 1), ("mails", "orders", 5)]
        {
            assert_eq!(distance(one, other), slips, "{one} {other}");
        }
        assert_eq!(distance("", "abc"), 3);
    }
}

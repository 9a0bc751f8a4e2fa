//! `vtq dlq list`: a page of dead letters, of one queue or of all.

use std::cmp::Reverse;
use std::fmt;

use anyhow::Context;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use vtq::{DeadLetter, Exact, MessageId, QueueName};

use crate::args::Global;
use crate::args::dlq::ListArgs;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, instant};

/// A place in the order of the list: the last to die first; of those that died at once, by queue and id.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cursor {
    died_at: DateTime<Utc>,
    queue: QueueName,
    id: MessageId,
}

/// A dead letter, in JSON.
#[derive(Serialize)]
struct Document<'a> {
    queue: &'a str,
    msg_id: MessageId,
    dead_lettered_at: DateTime<Utc>,
    enqueued_at: DateTime<Utc>,
    reason: &'a str,
    attempts: i32,
    read_ct: i32,
    redrives: i32,
    error_class: Option<&'a str>,
    error_message: Option<&'a str>,
    /// What --before takes to go on behind this one.
    cursor: String,
}

type Listed = (Cursor, DeadLetter);

pub(super) async fn run(global: &Global, output: Output, args: ListArgs) -> anyhow::Result<Exit> {
    let before = args.before.as_deref().map(Cursor::parse).transpose()?;
    let vtq = global.connect().await?;
    let queues = match &args.queue {
        Some(queue) => vec![queue.clone()],
        None => names(&vtq).await?,
    };
    let mut listed: Vec<Listed> = Vec::new();
    for name in &queues {
        let place = before.as_ref().map(|cursor| cursor.place_in(name));
        let page = vtq.queue(name)?.dlq_list(args.limit, place).await?;
        listed.extend(page.into_iter().map(|letter| (Cursor::of(name, &letter), letter)));
    }
    listed.sort_by_cached_key(|(cursor, _)| cursor.rank());
    let has_more = listed.len() >= usize::from(args.limit);
    listed.truncate(args.limit.into());

    if output.is_json() {
        output.json(&listed.iter().map(document).collect::<Vec<_>>())?;
    } else if !listed.is_empty() {
        output.table(table(&listed))?;
    }
    match listed.last() {
        None => {
            output.remark("there are no dead letters");
            return Ok(Exit::Nothing);
        }
        Some((cursor, _)) if has_more && !output.is_json() => {
            output.remark(&format!("there may be more: --before {cursor}"));
        }
        Some(_) => {}
    }
    Ok(Exit::Done)
}

async fn names(vtq: &vtq::Vtq) -> vtq::Result<Vec<QueueName>> {
    vtq.metrics_all(Exact::No).await?.iter().map(|metrics| QueueName::new(&metrics.queue)).collect()
}

fn table(listed: &[Listed]) -> Table {
    let mut table =
        Table::new(["message", "died", "reason", "attempts", "redrives", "error class", "error message"]);
    for (cursor, letter) in listed {
        table.row([
            Cell::text(format!("{}/{}", cursor.queue, letter.id)),
            Cell::text(instant(letter.dead_lettered_at)),
            Cell::text(&letter.reason),
            Cell::number(letter.attempts),
            Cell::number(letter.redrives),
            Cell::optional(letter.error_class.as_deref()),
            Cell::optional(letter.error_message.as_deref().map(cut)),
        ]);
    }
    table
}

/// A line of a list is to be read at a glance; `vtq dlq show` and --json have the whole text.
fn cut(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn document((cursor, letter): &Listed) -> Document<'_> {
    Document {
        queue: cursor.queue.as_str(),
        msg_id: letter.id,
        dead_lettered_at: letter.dead_lettered_at,
        enqueued_at: letter.enqueued_at,
        reason: &letter.reason,
        attempts: letter.attempts,
        read_ct: letter.read_ct,
        redrives: letter.redrives,
        error_class: letter.error_class.as_deref(),
        error_message: letter.error_message.as_deref(),
        cursor: cursor.to_string(),
    }
}

impl Cursor {
    fn of(queue: &QueueName, letter: &DeadLetter) -> Self {
        Self { died_at: letter.dead_lettered_at, queue: queue.clone(), id: letter.id }
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let parts = || {
            let (died_at, name) = text.split_once(',')?;
            let (queue, id) = name.split_once('/')?;
            Some(Self {
                died_at: DateTime::parse_from_rfc3339(died_at).ok()?.to_utc(),
                queue: QueueName::new(queue).ok()?,
                id: id.parse().ok()?,
            })
        };
        parts().with_context(|| {
            format!("--before {text:?} is not a cursor: give the one that the page before ended with")
        })
    }

    fn rank(&self) -> (Reverse<DateTime<Utc>>, QueueName, Reverse<MessageId>) {
        (Reverse(self.died_at), self.queue.clone(), Reverse(self.id))
    }

    /// Where a queue's own list goes on. Of those that died at the very same time, the queues before the cursor's
    /// have been listed and those behind it have not.
    fn place_in(&self, queue: &QueueName) -> (DateTime<Utc>, MessageId) {
        let id = match queue.cmp(&self.queue) {
            std::cmp::Ordering::Less => MessageId::MIN,
            std::cmp::Ordering::Equal => self.id,
            std::cmp::Ordering::Greater => MessageId::MAX,
        };
        (self.died_at, id)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let died_at = self.died_at.to_rfc3339_opts(SecondsFormat::Micros, true);
        write!(f, "{died_at},{}/{}", self.queue, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(text: &str) -> Cursor {
        Cursor::parse(text).expect("this is a cursor")
    }

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let text = "2026-01-31T08:00:00.123456Z,orders/42";

        assert_eq!(cursor(text).to_string(), text);
        for text in ["", "42", "orders/42", "2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z,orders"] {
            assert!(Cursor::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_to_die_is_first_and_ties_go_by_queue_and_id() {
        let order = [
            "2026-01-31T08:00:01Z,b/1",
            "2026-01-31T08:00:00Z,a/2",
            "2026-01-31T08:00:00Z,a/1",
            "2026-01-31T08:00:00Z,b/9",
        ];
        let mut shuffled: Vec<Cursor> = order.iter().rev().map(|text| cursor(text)).collect();
        shuffled.sort_by_cached_key(Cursor::rank);

        assert_eq!(shuffled, order.map(cursor));
    }
}

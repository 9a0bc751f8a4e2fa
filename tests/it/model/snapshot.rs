//! The whole of a queue as lines of text: as the model has it, and as the tables do.

use std::collections::BTreeMap;

use super::state::{Instant, Model, Place};

/// The lines of the tables, in any order. Those of the archive only where acks are kept.
pub(super) fn sql(queue: &str) -> String {
    format!(
        "SELECT format('live %s read_ct=%s spent=%s due=%s until=%s started=%s unstarted=%s suspect=%s holder=%s'
                ' level=%s limit=%s expires=%s redrives=%s', m.msg_id, m.read_ct, m.read_ct - m.refunded_ct,
            hours(m.ready_at), CASE WHEN is_leased THEN hours(m.vt) END,
            CASE WHEN is_leased THEN (m.started_read_ct >= m.read_ct)::text END, m.unstarted_ct, m.is_suspect::text,
            m.holder, m.priority, m.max_attempts, hours(m.expires_at), coalesce(m.headers ->> 'vtq_redrives', '0'))
        FROM vtq.{queue} AS m CROSS JOIN LATERAL (SELECT m.vt <> m.ready_at AND m.read_ct > 0) AS l (is_leased)
        UNION ALL
        SELECT format('dead %s read_ct=%s since=%s reason=%s attempts=%s redrives=%s', d.msg_id, d.read_ct,
            hours(d.dead_lettered_at), b.block ->> 'reason', b.block ->> 'attempts', coalesce(b.block ->> 'redrives', '0'))
        FROM vtq.{queue}_dlq AS d CROSS JOIN LATERAL (SELECT d.headers -> 'vtq_dead_letter') AS b (block)
        UNION ALL
        SELECT format('done %s read_ct=%s', a.msg_id, a.read_ct) FROM vtq.{queue}_archive AS a
        UNION ALL
        SELECT format('attempt %s/%s attempt=%s outcome=%s due=%s', t.msg_id, t.read_ct, t.attempt, t.outcome, hours(t.vt))
        FROM vtq.{queue}_attempts AS t"
    )
}

/// Everything about some messages, to the last bit: what a stale call must leave as it is.
pub(super) fn image_sql(queue: &str, ids: &[i64]) -> String {
    let ids = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let tables = ["", "_dlq", "_archive", "_attempts"];
    let selects = tables.map(|table| {
        format!("SELECT '{table} ' || t::text FROM vtq.{queue}{table} AS t WHERE t.msg_id IN ({ids})")
    });
    // In an order of its own: statistics that come in between may change the plan.
    format!("SELECT i.line FROM ({}) AS i (line) ORDER BY i.line COLLATE \"C\"", selects.join(" UNION ALL "))
}

/// The lines of the model.
pub(super) fn of(model: &Model, keeps: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let rel = |instant: Instant| model.hours_until(instant);
    for (id, m) in model.committed() {
        match m.place {
            Place::Live => lines.push(format!(
                "live {id} read_ct={} spent={} due={} until={} started={} unstarted={} suspect={} holder={} \
                 level={} limit={} expires={} redrives={}",
                m.read_ct,
                m.spent,
                rel(m.due),
                text(m.lease.map(|lease| rel(lease.until))),
                text(m.lease.map(|lease| lease.is_started)),
                m.unstarted,
                m.is_suspect,
                text(m.holder),
                m.level,
                text(m.own_limit),
                text(m.expires.map(rel)),
                m.redrives,
            )),
            Place::Dead { since, reason, attempts } => lines.push(format!(
                "dead {id} read_ct={} since={} reason={reason} attempts={attempts} redrives={}",
                m.read_ct,
                rel(since),
                m.redrives,
            )),
            Place::Done if keeps => lines.push(format!("done {id} read_ct={}", m.read_ct)),
            Place::Done | Place::Cancelled | Place::Purged => {}
        }
        lines.extend(m.attempts.iter().map(|(read_ct, a)| {
            let due = text(a.due.map(rel));
            format!("attempt {id}/{read_ct} attempt={} outcome={} due={due}", a.attempt, a.outcome)
        }));
    }
    lines
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// What is promised of every queue at any time, told from its lines alone; `seen` is the highest `read_ct` of each
/// message so far.
pub(super) fn check(lines: &[String], seen: &mut BTreeMap<i64, i32>) -> Result<(), String> {
    let mut places: BTreeMap<i64, &str> = BTreeMap::new();
    for line in lines.iter().filter(|line| !line.starts_with("attempt ")) {
        let mut words = line.split(' ');
        let (place, id) = (words.next().unwrap_or_default(), words.next().and_then(|id| id.parse().ok()));
        let number = |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key)?.parse::<i32>().ok());
        let (Some(id), Some(read_ct)) = (id, number("read_ct=")) else {
            return Err(format!("odd line: {line}"));
        };
        if let Some(other) = places.insert(id, place) {
            return Err(format!("message {id} is in two places: {other} and {place}"));
        }
        if number("spent=").is_some_and(|spent| spent < 0 || spent > read_ct) {
            return Err(format!("more is refunded than was read: {line}"));
        }
        let before = seen.insert(id, read_ct).unwrap_or(0);
        if read_ct < before {
            return Err(format!("read_ct fell from {before}: {line}"));
        }
    }
    Ok(())
}

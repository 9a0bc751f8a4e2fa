//! What each step asks of the database: one statement whose first column is the answer as text.

use super::state::{Backoff, Ticket};
use super::step::{Sent, Step};

/// Tells an instant in hours from now, rounded: a run of the test takes minutes, and its clock counts in hours.
pub(super) const HOURS: &str =
    "CREATE FUNCTION hours(instant timestamptz) RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT round(extract(epoch FROM instant - clock_timestamp()) / 3600)::bigint $$";

/// The statement of a step. `after` is the two floor arguments of a read that has floors.
pub(super) fn sql(step: &Step, queue: &str, after: &str) -> String {
    match step {
        Step::Begin(_) => "BEGIN".into(),
        Step::End(_, true) => "COMMIT".into(),
        Step::End(_, false) => "ROLLBACK".into(),
        Step::Pass(hours) => pass(queue, *hours),
        Step::Send(_, sent, 1) => format!("SELECT vtq.send('{queue}', '{{}}'{})", options(sent)),
        Step::Send(_, sent, ct) => format!(
            "SELECT id FROM vtq.send_batch('{queue}', array_fill('{{}}'::jsonb, ARRAY[{ct}]){}) AS id",
            options(sent)
        ),
        Step::Read { qty, hours, holder, .. } => format!(
            "SELECT format('%s/%s attempt=%s level=%s until=%s suspect=%s', msg_id, read_ct, attempt, priority,
                hours(vt), is_suspect::text), priority, ready_at, msg_id
            FROM vtq.read('{queue}', '{hours} h', {qty}{after}{})",
            holder.map(|holder| format!(", holder => {holder}")).unwrap_or_default()
        ),
        Step::Peek(_, qty) => format!("SELECT msg_id FROM vtq.peek('{queue}', {qty})"),
        Step::Ack(_, tickets) => format!("SELECT id FROM vtq.ack('{queue}', {}) AS id", pairs(tickets)),
        Step::Release(_, tickets) => format!("SELECT id FROM vtq.release('{queue}', {}) AS id", pairs(tickets)),
        Step::Extend { leases, hours, .. } => {
            let (tickets, started): (Vec<Ticket>, Vec<Option<bool>>) = leases.iter().copied().unzip();
            let started = match started.iter().copied().collect::<Option<Vec<bool>>>() {
                Some(started) => format!("'{{{}}}'", list(started.into_iter())),
                None => "NULL".into(),
            };
            format!("SELECT id FROM vtq.extend('{queue}', {}, '{hours} h', {started}) AS id", pairs(&tickets))
        }
        Step::Fail { ticket, after, how, .. } => {
            let after = after.map_or("NULL".into(), |hours| format!("'{hours} h'"));
            fate(&format!("vtq.fail('{queue}', {}, '{{\"outcome\": \"{how}\"}}', {after})", pair(*ticket)))
        }
        Step::Defer(_, ticket, hours) => fate(&format!("vtq.defer('{queue}', {}, '{hours} h')", pair(*ticket))),
        Step::DeadLetter(_, ticket, reason) => {
            format!("SELECT vtq.dead_letter('{queue}', {}, '{reason}')", pair(*ticket))
        }
        Step::Cancel(_, id) => format!("SELECT vtq.cancel('{queue}', {id})"),
        Step::RunNow(_, id) => format!("SELECT vtq.run_now('{queue}', {id})"),
        Step::Redrive(_, id, hours) => {
            let delay = hours.map(|hours| format!(", '{hours} h'")).unwrap_or_default();
            format!("SELECT vtq.redrive('{queue}', {id}{delay})")
        }
        Step::RedriveAll(_, qty, reason) => {
            let filter = reason.map(|reason| format!("\"reason\": \"{reason}\"")).unwrap_or_default();
            format!("SELECT vtq.redrive_all('{queue}', {qty}, '{{{filter}}}')")
        }
        Step::Purge(_, id) => format!("SELECT vtq.dlq_purge('{queue}', {id})"),
        Step::PurgeOld(_, hours, qty) => {
            format!("SELECT vtq.dlq_purge('{queue}', older_than => '{hours} h', qty => {qty})")
        }
        Step::Sweep(_, qty) => {
            format!("SELECT format('dead=%s abandoned=%s', dead, abandoned) FROM vtq.sweep('{queue}', {qty})")
        }
        Step::Pause(_) => format!("SELECT vtq.pause('{queue}')"),
        Step::Resume(_) => format!("SELECT vtq.resume('{queue}')"),
        Step::Limit(_, limit) => {
            format!("SELECT vtq.set_queue('{queue}', '{{\"max_attempts\": {limit}}}') ->> 'max_attempts'")
        }
    }
}

/// Moves everything that the queue holds into the past, which is how time goes by. `vt` and `ready_at` move together:
/// where they are equal, nobody holds a lease.
fn pass(queue: &str, hours: i64) -> String {
    let move_all = |table: &str, columns: &[&str]| {
        let set: Vec<String> = columns.iter().map(|c| format!("{c} = {c} - interval '{hours} h'")).collect();
        format!("UPDATE vtq.{queue}{table} SET {};", set.join(", "))
    };
    [
        move_all("", &["ready_at", "vt", "expires_at", "enqueued_at", "last_read_at"]),
        move_all("_dlq", &["dead_lettered_at", "expires_at", "enqueued_at", "last_read_at"]),
        move_all("_attempts", &["started_at", "ended_at", "vt"]),
    ]
    .concat()
}

fn options(sent: &Sent) -> String {
    let mut options = String::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            options.push_str(&format!(", {name} => {value}"));
        }
    };
    add("delay", sent.delay.map(|hours| format!("'{hours} h'")));
    add("priority", sent.level.map(|level| level.to_string()));
    add("max_attempts", sent.limit.map(|limit| limit.to_string()));
    add("expires_at", sent.expires.map(|hours| format!("clock_timestamp() + interval '{hours} h'")));
    add("policy", sent.backoff.as_ref().map(|backoff| format!("'{{\"backoff\": {}}}'", policy(backoff))));
    options
}

/// The backoff as vtq takes it, in seconds and without jitter.
pub(super) fn policy(backoff: &Backoff) -> String {
    match backoff {
        Backoff::Doubling => {
            r#"{"kind": "exponential", "base": 3600, "max": 14400, "jitter": "none"}"#.into()
        }
        Backoff::Fixed(hours) => format!(r#"{{"kind": "fixed", "base": {}}}"#, hours * 3600),
        Backoff::List(hours) => {
            format!(r#"{{"kind": "list", "delays": [{}]}}"#, list(hours.iter().map(|hours| hours * 3600)))
        }
    }
}

fn fate(call: &str) -> String {
    format!("SELECT format('%s %s', outcome, hours(vt)) FROM {call}")
}

fn pair((id, read_ct): Ticket) -> String {
    format!("{id}, {read_ct}")
}

fn pairs(tickets: &[Ticket]) -> String {
    let (ids, read_cts): (Vec<i64>, Vec<i32>) = tickets.iter().copied().unzip();
    format!("'{{{}}}', '{{{}}}'", list(ids.into_iter()), list(read_cts.into_iter()))
}

fn list(values: impl Iterator<Item = impl ToString>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(",")
}

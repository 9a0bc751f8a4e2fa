//! Every file of `sql/`, and every statement that the client sends. Nothing else knows SQL.

/// A file of `sql/`: its path there without the ending, and its text.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// A step of the schema's history: forward only, frozen once released.
pub(crate) struct Migration {
    pub(crate) version: i32,
    pub(crate) name: &'static str,
    pub(crate) files: &'static [File],
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(File { name: $name, text: include_str!(concat!("../sql/", $name, ".sql")) }),*]
    };
}

/// The migrations in their order. The first creates the catalogue, from the files that show it as it is.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "create_catalogue",
        files: files!(
            "migrations/0001_create_catalogue",
            "schema/vtq._queue",
            "schema/vtq._rate",
            "schema/vtq._sleeper",
            "schema/vtq._taken",
            "schema/vtq._worker",
        ),
    },
    Migration {
        version: 2,
        name: "add_schedules",
        files: files!("migrations/0002_add_schedules", "schema/vtq._schedule", "schema/vtq._tick"),
    },
    Migration { version: 3, name: "admit_by_lane", files: files!("migrations/0003_admit_by_lane") },
    Migration {
        version: 4,
        name: "line_for_levels_only",
        files: files!("migrations/0004_line_for_levels_only"),
    },
];

/// What is installed anew whenever it changed: functions, and nothing that holds data.
pub(crate) const FUNCTIONS: &[File] = files!(
    "schema/vtq._deadline",
    "schema/vtq._lane",
    "schema/vtq._own",
    "schema/vtq._state",
    "schema/vtq._default_options",
    "functions/vtq._adopt",
    "functions/vtq._ahead",
    "functions/vtq._allow",
    "functions/vtq._apply_options",
    "functions/vtq._are_levels",
    "functions/vtq._backtrace",
    "functions/vtq._beat",
    "functions/vtq._broken_number",
    "functions/vtq._bury",
    "functions/vtq._check_backoff",
    "functions/vtq._check_batch",
    "functions/vtq._check_cron",
    "functions/vtq._check_deadlines",
    "functions/vtq._check_dlq",
    "functions/vtq._check_headers",
    "functions/vtq._check_instant",
    "functions/vtq._check_keys",
    "functions/vtq._check_leases",
    "functions/vtq._check_length",
    "functions/vtq._check_options",
    "functions/vtq._check_policy",
    "functions/vtq._check_qty",
    "functions/vtq._check_schedule",
    "functions/vtq._check_queue",
    "functions/vtq._check_send",
    "functions/vtq._clean_error",
    "functions/vtq._compact",
    "functions/vtq._count_dead",
    "functions/vtq._count_states",
    "functions/vtq._create_missing",
    "functions/vtq._cut",
    "functions/vtq._doze",
    "functions/vtq._drop_archive",
    "functions/vtq._end_lanes",
    "functions/vtq._due_schedules",
    "functions/vtq._explain_settled",
    "functions/vtq._filter_instant",
    "functions/vtq._fire",
    "functions/vtq._held_condition",
    "functions/vtq._hold_back",
    "functions/vtq._holder",
    "functions/vtq._insert_keyed",
    "functions/vtq._is_rate",
    "functions/vtq._is_whole",
    "functions/vtq._iso",
    "functions/vtq._keep_key",
    "functions/vtq._key_holder",
    "functions/vtq._key_slot",
    "functions/vtq._late",
    "functions/vtq._layers",
    "functions/vtq._last_try",
    "functions/vtq._leave",
    "functions/vtq._lint_options",
    "functions/vtq._lock_lease",
    "functions/vtq._letter_filter",
    "functions/vtq._look_again",
    "functions/vtq._no_queue",
    "functions/vtq._no_schedule",
    "functions/vtq._notify",
    "functions/vtq._own_backoff",
    "functions/vtq._own_functions",
    "functions/vtq._own_timeout",
    "functions/vtq._promote",
    "functions/vtq._record",
    "functions/vtq._redrives",
    "functions/vtq._refuse_contradiction",
    "functions/vtq._remove_attempts",
    "functions/vtq._remove_taken",
    "functions/vtq._requeue",
    "functions/vtq._retake_key",
    "functions/vtq._return",
    "functions/vtq._rise",
    "functions/vtq._schedule_failed",
    "functions/vtq._seconds",
    "functions/vtq._send_keyed",
    "functions/vtq._send_scheduled",
    "functions/vtq._settled_before",
    "functions/vtq._slot_freed",
    "functions/vtq._spend",
    "functions/vtq._supersede",
    "functions/vtq._superseder",
    "functions/vtq._sweep_superseded",
    "functions/vtq._take_unique",
    "functions/vtq._unpause_groups",
    "functions/vtq._untaken",
    "functions/vtq._waits_for",
    "functions/vtq._why",
    "functions/vtq.ack",
    "functions/vtq.attempts",
    "functions/vtq.backoff",
    "functions/vtq.cancel",
    "functions/vtq.create_queue",
    "functions/vtq.dead_letter",
    "functions/vtq.defer",
    "functions/vtq.dlq_list",
    "functions/vtq.dlq_purge",
    "functions/vtq.dlq_show",
    "functions/vtq.drop_queue",
    "functions/vtq.explain",
    "functions/vtq.extend",
    "functions/vtq.fail",
    "functions/vtq.lint",
    "functions/vtq.maintain",
    "functions/vtq.metrics",
    "functions/vtq.metrics_all",
    "functions/vtq.pause",
    "functions/vtq.peek",
    "functions/vtq.queue_options",
    "functions/vtq.read",
    "functions/vtq.redrive",
    "functions/vtq.redrive_all",
    "functions/vtq.redrive_taken",
    "functions/vtq.release",
    "functions/vtq.resume",
    "functions/vtq.run_now",
    "functions/vtq.schedule_add",
    "functions/vtq.schedule_list",
    "functions/vtq.schedule_pause",
    "functions/vtq.schedule_remove",
    "functions/vtq.schedule_resume",
    "functions/vtq.schedule_run",
    "functions/vtq.send",
    "functions/vtq.send_batch",
    "functions/vtq.send_batch_report",
    "functions/vtq.send_report",
    "functions/vtq.set_queue",
    "functions/vtq.simulate_backoff",
    "functions/vtq.sweep",
    "functions/vtq.time_to_dlq",
    "functions/vtq.workers",
    "queue/vtq._archive_ahead",
    "queue/vtq._create_ack",
    "queue/vtq._create_admit",
    "queue/vtq._create_admit_groups",
    "queue/vtq._create_archive",
    "queue/vtq._create_attempts",
    "queue/vtq._create_dlq",
    "queue/vtq._create_extend",
    "queue/vtq._create_front",
    "queue/vtq._create_live",
    "queue/vtq._create_promote",
    "queue/vtq._create_read",
    "queue/vtq._create_send",
    "queue/vtq._create_send_batch",
    "queue/vtq._create_verbs",
    "queue/vtq._wake",
);

/// Where the migrations that ran are kept. It exists before the first of them.
pub(crate) const BOOTSTRAP: &str = "\
CREATE TABLE IF NOT EXISTS vtq._migration (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    vtq_version text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT _migration_pk PRIMARY KEY (version)
);
COMMENT ON TABLE vtq._migration IS 'The migrations that ran; version 0 is the set of functions, installed anew whenever it changed.';";

/// The functions that each queue has of its own are built from the installed ones.
pub(crate) const REBUILD: &str = "SELECT vtq._create_verbs(q.queue) FROM vtq._queue AS q";
/// Nobody but their owner runs vtq's functions, unless granted. PostgreSQL lets PUBLIC run new ones.
pub(crate) const CLOSE: &str = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vtq FROM PUBLIC";

pub(crate) const HAS_MIGRATIONS: &str = "SELECT to_regclass('vtq._migration') IS NOT NULL";
pub(crate) const MIGRATIONS_RUN: &str = "SELECT version, checksum, vtq_version FROM vtq._migration";
pub(crate) const RECORD_MIGRATION: &str = "\
INSERT INTO vtq._migration AS m (version, name, checksum, vtq_version) VALUES ($1, $2, $3, $4) \
ON CONFLICT (version) DO UPDATE SET checksum = excluded.checksum, vtq_version = excluded.vtq_version, \
applied_at = clock_timestamp()";

pub(crate) const SEND: &str = "\
SELECT vtq.send($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
pub(crate) const SEND_REPORT: &str = "\
SELECT msg_id, outcome FROM vtq.send_report($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
$17)";
pub(crate) const SEND_BATCH: &str = "\
SELECT vtq.send_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
pub(crate) const SEND_BATCH_REPORT: &str = "\
SELECT msg_id, outcome FROM vtq.send_batch_report($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
$16, $17) ORDER BY place";
/// The columns of a message, in the order in which they are decoded.
macro_rules! columns {
    () => {
        "msg_id, read_ct, attempt, ready_at, enqueued_at, last_read_at, vt, headers, message, priority, timeout, is_suspect"
    };
}

pub(crate) const READ: &str = concat!("SELECT ", columns!(), " FROM vtq.read($1, $2, $3)");
/// What a worker asks where the queue lacks its own read, which [`own::claim`] calls: it says why.
pub(crate) const CLAIM: &str =
    concat!("SELECT ", columns!(), ", false AS has_lane FROM vtq.read($1, $2, $3, $4, $5, $6)");

/// The same calls of a queue's own functions, which the verbs hand over to: at the price of one plan less a call, and
/// of one copy less of each row. The parameters are those of the verbs; the name of the queue, `$1`, and what only the
/// verbs take are not used.
pub(crate) mod own {
    use crate::name::QueueName;

    pub(crate) fn send(queue: &QueueName) -> String {
        format!("SELECT vtq.\"_{queue}.send\"($2, $3, $4, $5, $6, $7, $8, $9)")
    }

    pub(crate) fn send_batch(queue: &QueueName) -> String {
        format!("SELECT * FROM vtq.\"_{queue}.send_batch\"($2, $3, $4, $5, $6, $7, $8, $9)")
    }

    pub(crate) fn read(queue: &QueueName) -> String {
        let columns = columns!();
        format!("SELECT {columns} FROM vtq.\"_{queue}.read\"($2, $3, NULL, NULL, NULL)")
    }

    pub(crate) fn claim(queue: &QueueName) -> String {
        let columns = columns!();
        format!(
            "SELECT {columns}, has_lane FROM vtq.\"_{queue}.read\"($2, $3, $4, $5, $6) WHERE {WITHOUT_FSYNC}"
        )
    }

    pub(crate) fn ack(queue: &QueueName) -> String {
        format!("SELECT * FROM vtq.\"_{queue}.ack\"($2, $3, $4)")
    }

    pub(crate) fn extend(queue: &QueueName) -> String {
        format!("SELECT * FROM vtq.\"_{queue}.extend\"($2, $3, $4, NULL, NULL)")
    }

    pub(crate) fn beat(queue: &QueueName) -> String {
        format!("SELECT * FROM vtq.\"_{queue}.extend\"($2, $3, $4, $5, $6) WHERE {WITHOUT_FSYNC}")
    }

    /// Has the commit not wait for the disk: a claim or a heartbeat that a crash undoes is only done again. The setting
    /// is local to this statement's own transaction; a worker sends it, never a function, which would set it for the
    /// transaction of whoever calls. It stands for a value, so that it is computed once, and before the function runs.
    const WITHOUT_FSYNC: &str = "(SELECT set_config('synchronous_commit', 'off', true)) = 'off'";
}

pub(crate) const PEEK: &str = concat!("SELECT ", columns!(), " FROM vtq.peek($1, $2)");
pub(crate) const ACK: &str = "SELECT vtq.ack($1, $2, $3, $4)";
pub(crate) const EXTEND: &str = "SELECT vtq.extend($1, $2, $3, $4)";
pub(crate) const BEAT: &str = "SELECT vtq.extend($1, $2, $3, $4, $5, $6)";
pub(crate) const LATE: &str = "SELECT vtq._late($1, $2, $3, $4)";
pub(crate) const FAIL: &str = "SELECT outcome, vt FROM vtq.fail($1, $2, $3, $4, $5, $6)";
pub(crate) const DEFER: &str = "SELECT outcome, vt FROM vtq.defer($1, $2, $3, $4, $5, $6)";
pub(crate) const RELEASE: &str = "SELECT vtq.release($1, $2, $3, $4, $5)";
pub(crate) const DEAD_LETTER: &str = "SELECT vtq.dead_letter($1, $2, $3, $4, $5, $6)";
pub(crate) const CANCEL: &str = "SELECT vtq.cancel($1, $2)";
pub(crate) const RUN_NOW: &str = "SELECT vtq.run_now($1, $2)";
pub(crate) const REDRIVE: &str = "SELECT vtq.redrive($1, $2, $3)";
pub(crate) const REDRIVE_ALL: &str = "SELECT vtq.redrive_all($1, $2, $3)";
pub(crate) const REDRIVE_TAKEN: &str = "SELECT vtq.redrive_taken($1, $2)";
pub(crate) const DLQ_PURGE: &str = "SELECT vtq.dlq_purge($1, $2, $3, $4)";
pub(crate) const DLQ_LIST: &str = "\
SELECT msg_id, dead_lettered_at, enqueued_at, attempts, read_ct, redrives, reason, error_class, error_message \
FROM vtq.dlq_list($1, $2, $3, $4)";
pub(crate) const DLQ_SHOW: &str =
    "SELECT dead_lettered_at, enqueued_at, read_ct, headers, message FROM vtq.dlq_show($1, $2)";
pub(crate) const ATTEMPTS: &str = "\
SELECT read_ct, attempt, outcome, started_at, ended_at, vt, reason, error_class, error_code, error_message, \
error_detail, worker FROM vtq.attempts($1, $2)";
pub(crate) const EXPLAIN: &str = "SELECT vtq.explain($1, $2)";
pub(crate) const LINT: &str = "SELECT severity, setting, says FROM vtq.lint($1, $2, $3)";
pub(crate) const TIME_TO_DLQ: &str =
    "SELECT waits_least, waits_expected, waits_most, worst FROM vtq.time_to_dlq($1)";
pub(crate) const SIMULATE_BACKOFF: &str = "\
SELECT failure, wait_least, wait_p1, wait_p50, wait_p99, wait_most, since_p1, since_p50, since_p99, peak_1s, \
peak_100ms FROM vtq.simulate_backoff($1, $2, $3, $4)";
pub(crate) const SWEEP: &str = "SELECT dead, abandoned FROM vtq.sweep($1, $2)";
pub(crate) const MAINTAIN: &str = "SELECT vtq.maintain($1)";
pub(crate) const CREATE_QUEUE: &str = "SELECT vtq.create_queue($1, $2)";
pub(crate) const SET_QUEUE: &str = "SELECT vtq.set_queue($1, $2)";
pub(crate) const DROP_QUEUE: &str = "SELECT vtq.drop_queue($1)";
pub(crate) const QUEUE_OPTIONS: &str = "SELECT vtq.queue_options($1)";
pub(crate) const PAUSE: &str = "SELECT vtq.pause($1, $2, coalesce($3, 'infinity'))";
pub(crate) const RESUME: &str = "SELECT vtq.resume($1)";
pub(crate) const METRICS: &str = "\
SELECT queue_name, ready, in_flight, delayed, retrying, waiting, exhausted, expired, dead, oldest_ready_age, \
oldest_dead_age, last_error_class, sent_total, CASE WHEN isfinite(paused_until) THEN paused_until END, \
paused_until IS NOT NULL, pause_reason, table_bytes, estimated, error FROM vtq.metrics($1, $2)";
pub(crate) const METRICS_ALL: &str = "\
SELECT queue_name, ready, in_flight, delayed, retrying, waiting, exhausted, expired, dead, oldest_ready_age, \
oldest_dead_age, last_error_class, sent_total, CASE WHEN isfinite(paused_until) THEN paused_until END, \
paused_until IS NOT NULL, pause_reason, table_bytes, estimated, error FROM vtq.metrics_all($1)";
pub(crate) const WORKERS: &str = "\
SELECT worker_id, host, pid, version, queues, started_at, heartbeat_at, heartbeat_age, last_claim_at, \
last_claim_age, in_flight, wake_up FROM vtq.workers()";
pub(crate) const SCHEDULE_ADD: &str =
    "SELECT vtq.schedule_add($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
pub(crate) const SCHEDULE_REMOVE: &str = "SELECT vtq.schedule_remove($1)";
pub(crate) const SCHEDULE_PAUSE: &str = "SELECT vtq.schedule_pause($1, $2, coalesce($3, 'infinity'))";
pub(crate) const SCHEDULE_RESUME: &str = "SELECT vtq.schedule_resume($1)";
pub(crate) const SCHEDULE_RUN: &str = "SELECT vtq.schedule_run($1)";
pub(crate) const SCHEDULE_LIST: &str = "\
SELECT name, state, cron, timezone, queue, next_at, last_tick_at, last_sent_at, last_msg_id, sent_ct, skipped_ct, \
missed, missed_cap, grace, CASE WHEN isfinite(paused_until) THEN paused_until END, pause_reason, error, error_at, \
headers, message FROM vtq.schedule_list()";
pub(crate) const DUE_SCHEDULES: &str = "\
SELECT at, due_in, name, revision, cron, timezone, missed, missed_cap, grace, next_at FROM vtq._due_schedules($1, $2)";
pub(crate) const FIRE: &str = "SELECT tick_at, msg_id FROM vtq._fire($1, $2, $3, $4, $5, $6)";
pub(crate) const SCHEDULE_FAILED: &str = "SELECT vtq._schedule_failed($1, $2, $3, $4)";
pub(crate) const NOW: &str = "SELECT clock_timestamp()";
pub(crate) const DOZE: &str = "SELECT due_in, is_written FROM vtq._doze($1, $2, $3)";
pub(crate) const RISE: &str = "SELECT vtq._rise($1)";
pub(crate) const SIGN_OF_LIFE: &str = "\
SELECT queue, visibility_timeout, priorities, worker_no, worker_ct, is_capped
FROM vtq._beat($1, $2, $3, $4, $5, $6, $7, $8)";
pub(crate) const LEAVE: &str = "SELECT vtq._leave($1)";
/// Asks for a notification on a channel of this connection's own: whoever can hear it can hear the others.
pub(crate) const NOTIFY: &str = "SELECT pg_notify($1, '')";

/// The channel that is notified when a schedule was added or resumed. No queue's channel is called so.
pub(crate) const SCHEDULES: &str = "vtq__schedule";

/// The statement that listens on channels. Names of queues hold nothing that would end the quotes.
pub(crate) fn listen(channels: &[String]) -> String {
    channels.iter().map(|channel| format!("LISTEN \"{channel}\"; ")).collect()
}

/// The statement that copies messages into a queue. Its name holds nothing that would end the quotes.
pub(crate) fn copy(queue: &str) -> String {
    format!("COPY vtq.\"{queue}\" (priority, headers, message) FROM STDIN (FORMAT binary)")
}

-- vtq._queue: one row per queue: its options, its pause, what maintenance last did.
--   The typed columns are the effective options, worked out by vtq._apply_options whenever `options` changes,
--   so that a read looks up one row and computes nothing.
CREATE TABLE vtq._queue (
    queue text NOT NULL,
    options jsonb NOT NULL,
    visibility_timeout interval NOT NULL,
    max_attempts smallint NOT NULL,
    backoff jsonb NOT NULL,
    timeout interval,
    on_ack text NOT NULL,
    archive_retention interval,
    attempts_retention interval,
    dlq_retention interval,
    priorities smallint[] NOT NULL,
    aging interval,
    unlogged boolean NOT NULL,
    has_lanes boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    paused_at timestamptz,
    paused_until timestamptz,
    pause_reason text,
    archive_until timestamptz NOT NULL DEFAULT '-infinity',
    maintained_at timestamptz,
    compacted_at timestamptz,
    compaction_ct bigint NOT NULL DEFAULT 0,
    CONSTRAINT _queue_pk PRIMARY KEY (queue),
    CONSTRAINT _queue_on_ack_known CHECK (on_ack IN ('archive', 'delete'))
);

COMMENT ON TABLE vtq._queue IS 'One row per queue: its options, its pause, what maintenance last did.';
COMMENT ON COLUMN vtq._queue.options IS 'What was set by create_queue and set_queue, and nothing else; the rest comes from the defaults.';
COMMENT ON COLUMN vtq._queue.visibility_timeout IS 'How long a read hides a message, unless the read says otherwise.';
COMMENT ON COLUMN vtq._queue.timeout IS 'How long one run may take before its worker cancels it; null: no limit.';
COMMENT ON COLUMN vtq._queue.priorities IS 'The priority levels of the queue, the one served first in front.';
COMMENT ON COLUMN vtq._queue.aging IS 'A message that has been ready longer goes before the higher levels; null: never.';
COMMENT ON COLUMN vtq._queue.has_lanes IS 'Whether a message with a group_key or an exclusive_key was ever sent to it.';
COMMENT ON COLUMN vtq._queue.paused_until IS 'Reads return nothing until this instant; null: not paused.';
COMMENT ON COLUMN vtq._queue.archive_until IS 'The archive has a partition for every instant before this one.';

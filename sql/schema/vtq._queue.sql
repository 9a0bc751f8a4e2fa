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
    exclusive_limit integer NOT NULL,
    group_on_dead text NOT NULL,
    max_in_flight integer,
    rate_limit integer,
    rate_interval interval,
    key_rate_limit integer,
    key_rate_interval interval,
    aging interval,
    unlogged boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    paused_at timestamptz,
    paused_until timestamptz,
    pause_reason text,
    archive_until timestamptz NOT NULL DEFAULT '-infinity',
    maintained_at timestamptz,
    compacted_at timestamptz,
    compaction_ct bigint NOT NULL DEFAULT 0,
    CONSTRAINT _queue_pk PRIMARY KEY (queue),
    CONSTRAINT _queue_on_ack_known CHECK (on_ack IN ('archive', 'delete')),
    CONSTRAINT _queue_group_on_dead_known CHECK (group_on_dead IN ('continue', 'pause'))
);

COMMENT ON TABLE vtq._queue IS 'One row per queue: its options, its pause, what maintenance last did.';
COMMENT ON COLUMN vtq._queue.options IS 'What was set by create_queue and set_queue, and nothing else; the rest comes from the defaults.';
COMMENT ON COLUMN vtq._queue.visibility_timeout IS 'How long a read hides a message, unless the read says otherwise.';
COMMENT ON COLUMN vtq._queue.timeout IS 'How long one run may take before its worker cancels it; null: no limit.';
COMMENT ON COLUMN vtq._queue.priorities IS 'The priority levels of the queue, the one served first in front.';
COMMENT ON COLUMN vtq._queue.exclusive_limit IS 'How many messages of one exclusive_key run at once.';
COMMENT ON COLUMN vtq._queue.group_on_dead IS 'What becomes of a group whose message died: continue with the next, or pause until it is redriven or purged.';
COMMENT ON COLUMN vtq._queue.max_in_flight IS 'How many messages of the queue run at once, over all workers; null: no limit.';
COMMENT ON COLUMN vtq._queue.rate_limit IS 'So many messages are handed out per rate_interval; null: no limit.';
COMMENT ON COLUMN vtq._queue.key_rate_limit IS 'So many messages of one group_key or exclusive_key per key_rate_interval; null: no limit.';
COMMENT ON COLUMN vtq._queue.aging IS 'A message that has been ready longer goes before the higher levels; null: never.';
COMMENT ON COLUMN vtq._queue.paused_until IS 'Reads return nothing until this instant; null: not paused.';
COMMENT ON COLUMN vtq._queue.archive_until IS 'The archive has a partition for every instant before this one.';

-- vtq._create_live: builds the table of a queue's live messages.
--   queue      queue name, checked
--   is_unlogged  whether the table writes no WAL
--   writes   the table vtq.<queue>, its index and its trigger
-- Names that are not of the four tables start with "_", so that no queue's name can collide with them.
-- fillfactor 50 keeps room on each page, so that a claim rewrites its row there and touches no index (HOT):
-- no index may ever hold vt, read_ct, last_read_at or any other column that a claim sets. Those columns stand side by
-- side: the WAL of an update holds what lies between the first and the last byte that it changed.
-- The line's condition always holds; it is there for the planner, which cannot tell that of a statement that names no
-- level. Where a queue was analyzed when it was empty, all indexes cost the same to it, and it would look for each msg_id
-- of an ack by walking the whole line.
CREATE OR REPLACE FUNCTION vtq._create_live(queue text, is_unlogged boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($sql$
        CREATE %2$s TABLE vtq.%1$I (
            msg_id bigint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME vtq.%6$I),
            ready_at timestamptz NOT NULL DEFAULT statement_timestamp(),
            enqueued_at timestamptz NOT NULL DEFAULT statement_timestamp(),
            priority smallint NOT NULL DEFAULT 0,
            unstarted_ct smallint NOT NULL DEFAULT 0,
            refunded_ct integer NOT NULL DEFAULT 0,
            vt timestamptz NOT NULL DEFAULT statement_timestamp(),
            last_read_at timestamptz,
            read_ct integer NOT NULL DEFAULT 0,
            holder integer,
            started_read_ct integer NOT NULL DEFAULT 0,
            expires_at timestamptz,
            max_attempts smallint,
            is_suspect boolean NOT NULL DEFAULT false,
            is_key_free boolean NOT NULL DEFAULT false,
            unique_key text,
            unique_until text,
            unique_for interval,
            debounce_until timestamptz,
            group_key text,
            exclusive_key text,
            lane text,
            lane_place bigint,
            arrives_at timestamptz,
            retry_until timestamptz,
            policy jsonb,
            headers jsonb,
            message jsonb NOT NULL,
            CONSTRAINT %3$I PRIMARY KEY (msg_id),
            CONSTRAINT refund_within_deliveries CHECK (refunded_ct BETWEEN 0 AND read_ct),
            CONSTRAINT max_attempts_positive CHECK (max_attempts > 0)
        )
        WITH (
            fillfactor = 50,
            autovacuum_vacuum_scale_factor = 0,
            autovacuum_vacuum_threshold = 5000,
            autovacuum_vacuum_insert_threshold = 100000,
            autovacuum_vacuum_cost_delay = 0,
            autovacuum_analyze_scale_factor = 0,
            autovacuum_analyze_threshold = 50000,
            toast.autovacuum_vacuum_scale_factor = 0,
            toast.autovacuum_vacuum_threshold = 5000,
            toast.autovacuum_vacuum_cost_delay = 0
        );
        CREATE INDEX %4$I ON vtq.%1$I (priority, ready_at, msg_id) WHERE priority IS NOT NULL;
        CREATE UNIQUE INDEX %7$I ON vtq.%1$I (unique_key) WHERE unique_key IS NOT NULL AND NOT is_key_free;
        CREATE INDEX %10$I ON vtq.%1$I (unique_key, msg_id) WHERE is_key_free;
        CREATE INDEX %8$I ON vtq.%1$I (arrives_at, msg_id) WHERE arrives_at IS NOT NULL;
        CREATE INDEX %11$I ON vtq.%1$I (lane, arrives_at, msg_id) WHERE arrives_at IS NOT NULL;
        CREATE INDEX %9$I ON vtq.%1$I (lane, coalesce(lane_place, msg_id), msg_id)
            WHERE lane IS NOT NULL AND arrives_at IS NULL;
        CREATE TRIGGER wake AFTER INSERT ON vtq.%1$I FOR EACH STATEMENT EXECUTE FUNCTION vtq._wake();
        COMMENT ON TABLE vtq.%1$I IS %5$L;
        COMMENT ON COLUMN vtq.%1$I.ready_at IS 'Due from this instant on: the message''s place in the line. A read does not change it.';
        COMMENT ON COLUMN vtq.%1$I.vt IS 'Visible from this instant on: ready_at, or the end of the lease. Equal to ready_at when nobody holds a lease.';
        COMMENT ON COLUMN vtq.%1$I.read_ct IS 'Deliveries so far. Never lowered: with msg_id it is the lease.';
        COMMENT ON COLUMN vtq.%1$I.refunded_ct IS 'Deliveries that do not count as attempts: attempt = read_ct - refunded_ct.';
        COMMENT ON COLUMN vtq.%1$I.started_read_ct IS 'The last delivery whose run is known to have started; less than read_ct while a worker has not said so.';
        COMMENT ON COLUMN vtq.%1$I.holder IS 'Who was given the last delivery: worker_no in vtq._worker; null: a reader that is no worker.';
        COMMENT ON COLUMN vtq.%1$I.unstarted_ct IS 'Deliveries whose worker died before it said that the run had started, since a run last told how it ended.';
        COMMENT ON COLUMN vtq.%1$I.is_suspect IS 'The delivery before left no outcome: this message may be what killed its worker.';
        COMMENT ON COLUMN vtq.%1$I.max_attempts IS 'Runs allowed, the first included; null: the queue''s setting.';
        COMMENT ON COLUMN vtq.%1$I.expires_at IS 'Not started after this instant.';
        COMMENT ON COLUMN vtq.%1$I.policy IS 'This message''s own backoff and timeout; null for most.';
        COMMENT ON COLUMN vtq.%1$I.unique_key IS 'At most one live message has this key.';
        COMMENT ON COLUMN vtq.%1$I.unique_until IS 'When the key is free again: done, or started; null: no key.';
        COMMENT ON COLUMN vtq.%1$I.unique_for IS 'The key stays taken this long after success as well.';
        COMMENT ON COLUMN vtq.%1$I.is_key_free IS 'It was started, and its key with unique_until started is free since then.';
        COMMENT ON COLUMN vtq.%1$I.debounce_until IS 'A send that replaces this message cannot move it past this instant.';
        COMMENT ON COLUMN vtq.%1$I.group_key IS 'Messages of one group run one after the other, in order.';
        COMMENT ON COLUMN vtq.%1$I.exclusive_key IS 'At most so many messages of one key run at once, in no order.';
        COMMENT ON COLUMN vtq.%1$I.lane IS 'What this message waits its turn in: its group_key or exclusive_key; null for most.';
        COMMENT ON COLUMN vtq.%1$I.lane_place IS 'Its place in the lane where that is not its msg_id: it came late.';
        COMMENT ON COLUMN vtq.%1$I.arrives_at IS 'It takes its place in its lane from this instant on; null once it has.';
        COMMENT ON COLUMN vtq.%1$I.retry_until IS 'Not run again after this instant.';
        COMMENT ON INDEX vtq.%4$I IS 'The line: readers walk it from the front.'
    $sql$,
        queue,
        CASE WHEN is_unlogged THEN 'UNLOGGED' ELSE '' END,
        '_' || queue || '_pkey',
        '_' || queue || '_line',
        'Live messages of the queue: ready, in flight, delayed, retrying.' || CASE
            WHEN is_unlogged THEN ' UNLOGGED: a crash of the server empties this table, and a standby does not have it.'
            ELSE ''
        END,
        '_' || queue || '_seq',
        '_' || queue || '_unique',
        '_' || queue || '_arrivals',
        '_' || queue || '_lanes',
        '_' || queue || '_freed',
        '_' || queue || '_arriving'
    );
    -- From PostgreSQL 15 on an unlogged table's sequence is unlogged too: a crash would start it again at 1, and new
    -- messages would bear the ids of dead letters and of attempts.
    IF is_unlogged AND current_setting('server_version_num')::integer >= 150000 THEN
        EXECUTE format('ALTER SEQUENCE vtq.%I SET LOGGED', '_' || queue || '_seq');
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._create_live(text, boolean) IS 'Internal: builds the table of a queue''s live messages.';

-- vtq._create_dlq: builds the table of a queue's dead letters.
--   queue    queue name, checked
--   writes   the table vtq.<queue>_dlq and its index
CREATE OR REPLACE FUNCTION vtq._create_dlq(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($sql$
        CREATE TABLE vtq.%1$I (
            msg_id bigint NOT NULL,
            dead_lettered_at timestamptz NOT NULL,
            enqueued_at timestamptz NOT NULL,
            last_read_at timestamptz,
            expires_at timestamptz,
            read_ct integer NOT NULL,
            refunded_ct integer NOT NULL,
            max_attempts smallint,
            priority smallint NOT NULL,
            unique_key text,
            unique_until text,
            unique_for interval,
            group_key text,
            exclusive_key text,
            retry_until timestamptz,
            policy jsonb,
            headers jsonb NOT NULL,
            message jsonb NOT NULL,
            CONSTRAINT %2$I PRIMARY KEY (msg_id)
        )
        WITH (
            autovacuum_vacuum_scale_factor = 0.02,
            autovacuum_vacuum_threshold = 5000,
            autovacuum_vacuum_cost_delay = 0
        );
        CREATE INDEX %3$I ON vtq.%1$I (dead_lettered_at, msg_id);
        CREATE INDEX %4$I ON vtq.%1$I (group_key) WHERE group_key IS NOT NULL;
        COMMENT ON TABLE vtq.%1$I IS 'Dead letters of the queue, until redriven (vtq.redrive) or purged (vtq.dlq_purge).';
        COMMENT ON COLUMN vtq.%1$I.headers IS 'The message''s headers, and under vtq_dead_letter why it died.'
    $sql$,
        queue || '_dlq',
        '_' || queue || '_dlq_pkey',
        '_' || queue || '_dlq_age',
        '_' || queue || '_dlq_groups'
    );
END;
$$;

COMMENT ON FUNCTION vtq._create_dlq(text) IS 'Internal: builds the table of a queue''s dead letters.';

-- vtq._create_attempts: builds the table of a queue's deliveries that did not succeed.
--   queue    queue name, checked
--   writes   the table vtq.<queue>_attempts and its index
CREATE OR REPLACE FUNCTION vtq._create_attempts(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($sql$
        CREATE TABLE vtq.%1$I (
            msg_id bigint NOT NULL,
            read_ct integer NOT NULL,
            attempt integer NOT NULL,
            outcome text NOT NULL,
            started_at timestamptz,
            ended_at timestamptz NOT NULL,
            vt timestamptz,
            reason text,
            error_class text,
            error_code text,
            error_message text,
            error_detail text,
            worker text,
            CONSTRAINT %2$I PRIMARY KEY (msg_id, read_ct),
            CONSTRAINT outcome_known CHECK (outcome IN (
                'failed', 'panicked', 'timed_out', 'permanent', 'undecodable', 'expired',
                'deferred', 'released', 'abandoned', 'never_started', 'late_success', 'late_failure', 'cancelled',
                'by_operator'
            ))
        )
        WITH (
            autovacuum_vacuum_scale_factor = 0.02,
            autovacuum_vacuum_threshold = 5000,
            autovacuum_vacuum_cost_delay = 0
        );
        CREATE INDEX %3$I ON vtq.%1$I (ended_at);
        COMMENT ON TABLE vtq.%1$I IS 'One row per delivery that did not succeed. Rows stay with their message through every redrive.';
        COMMENT ON COLUMN vtq.%1$I.attempt IS 'The attempt that this delivery was, 1 for the first.';
        COMMENT ON COLUMN vtq.%1$I.vt IS 'When the message was to be due again; null: no further run was granted.'
    $sql$,
        queue || '_attempts',
        '_' || queue || '_attempts_pkey',
        '_' || queue || '_attempts_age'
    );
END;
$$;

COMMENT ON FUNCTION vtq._create_attempts(text) IS 'Internal: builds the table of a queue''s deliveries that did not succeed.';

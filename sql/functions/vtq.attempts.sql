-- vtq.attempts: the deliveries of one message that did not succeed, the first one first.
--   queue    queue name
--   msg_id   the message, live, dead, archived or gone
--   returns  one row per delivery; see the comments of vtq.<queue>_attempts
--   index    primary key of vtq.<queue>_attempts
--   raises   VT001, 22023
CREATE OR REPLACE FUNCTION vtq.attempts(queue text, msg_id bigint)
RETURNS TABLE (
    read_ct integer,
    attempt integer,
    outcome text,
    started_at timestamptz,
    ended_at timestamptz,
    vt timestamptz,
    reason text,
    error_class text,
    error_code text,
    error_message text,
    error_detail text,
    worker text
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = attempts.queue) THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    RETURN QUERY EXECUTE format($sql$
        SELECT a.read_ct, a.attempt, a.outcome, a.started_at, a.ended_at, a.vt, a.reason, a.error_class,
            a.error_code, a.error_message, a.error_detail, a.worker
        FROM vtq.%1$I AS a
        WHERE a.msg_id = $1
        ORDER BY a.read_ct
    $sql$, queue || '_attempts')
    USING msg_id;
END;
$$;

COMMENT ON FUNCTION vtq.attempts(text, bigint) IS 'The deliveries of one message that did not succeed, the first one first.';

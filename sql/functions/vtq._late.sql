-- vtq._late: writes down how runs ended whose leases were lost: the sign that a visibility timeout is too short.
--   queue               queue name
--   msg_ids, read_cts   the leases, paired by position
--   outcomes            'late_success' or 'late_failure' for each
--   returns  how many were written down
--   writes   vtq.<queue>_attempts, where the delivery stands as one that left no outcome
--   index    primary key of vtq.<queue>_attempts
--   raises   VT001, 22023
CREATE OR REPLACE FUNCTION vtq._late(queue text, msg_ids bigint[], read_cts integer[], outcomes text[])
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    written_ct bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = _late.queue) THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    PERFORM vtq._check_leases(msg_ids, read_cts);
    EXECUTE format($sql$
        UPDATE vtq.%1$I AS a
        SET outcome = lease.outcome
        FROM (
            SELECT l.msg_id, l.read_ct, l.outcome
            FROM unnest($1, $2, $3) AS l (msg_id, read_ct, outcome)
            ORDER BY l.msg_id, l.read_ct
        ) AS lease
        WHERE a.msg_id = lease.msg_id AND a.read_ct = lease.read_ct AND a.outcome IN ('abandoned', 'never_started')
    $sql$, queue || '_attempts')
    USING msg_ids, read_cts, outcomes;
    GET DIAGNOSTICS written_ct = ROW_COUNT;
    RETURN written_ct;
END;
$$;

COMMENT ON FUNCTION vtq._late(text, bigint[], integer[], text[])
    IS 'Internal: writes down how runs ended whose leases were lost.';

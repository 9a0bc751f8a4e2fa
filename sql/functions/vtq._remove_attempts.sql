-- vtq._remove_attempts: removes attempts that are past their retention.
--   queue      queue name
--   retention  how long an attempt is kept
--   returns  how many were removed, at most 10000
--   writes   vtq.<queue>_attempts
--   index    _<queue>_attempts_age
-- The history of a message that is still live or dead is not touched: it tells why.
CREATE OR REPLACE FUNCTION vtq._remove_attempts(queue text, retention interval)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    removed_ct bigint;
BEGIN
    EXECUTE format($sql$
        DELETE FROM vtq.%1$I AS a
        WHERE a.ctid = ANY (ARRAY(
            SELECT p.ctid
            FROM vtq.%1$I AS p
            WHERE p.ended_at < $1
                AND NOT EXISTS (SELECT FROM vtq.%2$I AS m WHERE m.msg_id = p.msg_id)
                AND NOT EXISTS (SELECT FROM vtq.%3$I AS d WHERE d.msg_id = p.msg_id)
            ORDER BY p.ended_at
            LIMIT 10000
        ))
    $sql$, queue || '_attempts', queue, queue || '_dlq')
    USING clock_timestamp() - retention;
    GET DIAGNOSTICS removed_ct = ROW_COUNT;
    RETURN removed_ct;
END;
$$;

COMMENT ON FUNCTION vtq._remove_attempts(text, interval) IS 'Internal: removes attempts that are past their retention.';

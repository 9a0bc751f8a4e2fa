-- vtq._remove_taken: removes unique keys of messages that succeeded, once that means nothing for others any more.
--   queue    queue name
--   writes   vtq._taken, up to 10000 rows
--   index    _taken_until, _<queue>_freed
-- The key is not taken any more, and no older copy runs that must not run again.
CREATE OR REPLACE FUNCTION vtq._remove_taken(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
BEGIN
    EXECUTE format($sql$
        DELETE FROM vtq._taken AS t
        WHERE t.ctid = ANY (ARRAY(
            SELECT p.ctid
            FROM vtq._taken AS p
            WHERE p.queue = $1 AND p.until <= $2
                AND NOT EXISTS (
                    SELECT FROM vtq.%1$I AS o
                    WHERE o.unique_key = p.unique_key AND o.is_key_free AND o.msg_id < p.msg_id
                )
            LIMIT 10000
            FOR UPDATE SKIP LOCKED
        ))
    $sql$, queue) USING queue, clock_timestamp();
END;
$$;

COMMENT ON FUNCTION vtq._remove_taken(text)
    IS 'Internal: removes unique keys of messages that succeeded, once that means nothing for others.';

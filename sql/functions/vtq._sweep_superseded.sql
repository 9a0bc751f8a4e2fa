-- vtq._sweep_superseded: takes out messages whose worker died and that a newer copy has superseded meanwhile.
--   queue    queue name
--   at       the instant to judge at
--   qty      how many at the most
--   writes   vtq.<queue>, vtq.<queue>_archive, vtq.<queue>_attempts
--   index    _<queue>_freed: the messages in flight whose key is free, and no other
-- No statement runs when a lease lapses, and a read passes such messages over; so a sweep brings them away.
CREATE OR REPLACE FUNCTION vtq._sweep_superseded(queue text, at timestamptz, qty integer)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
SET enable_bitmapscan = off
AS $$
DECLARE
    lapsed record;
BEGIN
    FOR lapsed IN EXECUTE format($sql$
        SELECT m.msg_id, vtq._superseder($3, m.msg_id, m.unique_key) AS newer
        FROM vtq.%1$I AS m
        WHERE m.is_key_free AND m.vt <= $1
            AND vtq._superseder($3, m.msg_id, m.unique_key) IS NOT NULL
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    $sql$, queue) USING at, qty, queue LOOP
        PERFORM vtq._supersede(queue, lapsed.msg_id, lapsed.newer);
    END LOOP;
END;
$$;

COMMENT ON FUNCTION vtq._sweep_superseded(text, timestamptz, integer)
    IS 'Internal: takes out messages whose worker died and that a newer copy has superseded meanwhile.';

-- vtq._hold_back: keeps doomed messages out of the readers' way while their table of dead letters is missing.
--   queue    queue name
--   msg_ids  messages locked by the caller
--   writes   vtq.<queue>: each time twice as long as since the last delivery, up to an hour; a WARNING
-- A message is never destroyed for want of a place to put it, and never stops the others. One without a lease is
-- delayed, since a vt of its own would look like a lease, and bring that of a delivery long settled back to life.
CREATE OR REPLACE FUNCTION vtq._hold_back(queue text, msg_ids bigint[])
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    started timestamptz := clock_timestamp();
BEGIN
    RAISE WARNING 'queue "%" has no table %, so % dead letters stay in the queue', queue,
        format('vtq.%I', queue || '_dlq'), cardinality(msg_ids)
        USING ERRCODE = 'VT004', HINT = format('Build it again: SELECT vtq.create_queue(%L);', queue);
    EXECUTE format($sql$
        UPDATE vtq.%1$I AS m
        SET vt = held.until,
            ready_at = CASE WHEN m.vt = m.ready_at THEN held.until ELSE m.ready_at END
        FROM (
            SELECT h.msg_id, $2 + least(
                interval '1 hour', greatest(interval '5 s', $2 - coalesce(h.last_read_at, h.enqueued_at))
            ) AS until
            FROM vtq.%1$I AS h
            WHERE h.msg_id = ANY ($1)
        ) AS held
        WHERE m.msg_id = held.msg_id
    $sql$, queue) USING msg_ids, started;
END;
$$;

COMMENT ON FUNCTION vtq._hold_back(text, bigint[])
    IS 'Internal: keeps doomed messages out of the way while their table of dead letters is missing.';

-- vtq._hold_back: keeps doomed messages out of the readers' way while their table of dead letters is missing.
--   queue    queue name
--   msg_ids  messages locked by the caller
--   writes   vtq.<queue>.vt: each time twice as far as the message has waited, up to an hour; a WARNING
-- A message is never destroyed for want of a place to put it, and never stops the others.
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
    EXECUTE format(
        'UPDATE vtq.%I AS m SET vt = $2 + least(interval ''1 hour'', greatest(interval ''5 s'', $2 - m.ready_at))'
        ' WHERE m.msg_id = ANY ($1)', queue
    ) USING msg_ids, started;
END;
$$;

COMMENT ON FUNCTION vtq._hold_back(text, bigint[])
    IS 'Internal: keeps doomed messages out of the way while their table of dead letters is missing.';

-- vtq.cancel: removes a live message, whoever holds it.
--   queue    queue name
--   msg_id   the message
--   returns  true when it was there; false when it was not: settled, dead or never sent
--   writes   vtq.<queue>; vtq.<queue>_attempts when it was in flight. Its holder learns at its next extend
--   index    primary key
--   raises   VT001
CREATE OR REPLACE FUNCTION vtq.cancel(queue text, msg_id bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    removed record;
    ended record;
    removed_ct bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = cancel.queue) THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    -- The lock first: what its lane then looks like does not change under the removal.
    EXECUTE format('SELECT FROM vtq.%I AS m WHERE m.msg_id = $1 FOR UPDATE', queue) USING msg_id;
    ended := vtq._end_lanes(queue, ARRAY[msg_id]);
    EXECUTE format($sql$
        DELETE FROM vtq.%1$I AS m
        WHERE m.msg_id = $1
        RETURNING m.read_ct, m.read_ct - m.refunded_ct AS attempt, m.last_read_at AS started, m.vt <> m.ready_at AS is_held
    $sql$, queue) INTO removed USING msg_id;
    GET DIAGNOSTICS removed_ct = ROW_COUNT;
    PERFORM vtq._promote(queue, ended.lanes, ended.places);
    IF removed.is_held THEN
        PERFORM vtq._slot_freed(queue);
    END IF;
    IF removed_ct > 0 AND removed.is_held AND removed.read_ct > 0 THEN
        PERFORM vtq._record(
            queue, msg_id, removed.read_ct, removed.attempt, removed.started, 'cancelled', NULL, NULL, NULL
        );
    END IF;
    RETURN removed_ct > 0;
END;
$$;

COMMENT ON FUNCTION vtq.cancel(text, bigint) IS 'Removes a live message, whoever holds it; its holder learns at its next extend.';

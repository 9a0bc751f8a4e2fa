-- vtq._requeue: ends a lease and gives the message its next due time.
--   queue, msg_id    the message, locked by the caller
--   due              when it is due again
--   is_refunded      whether this delivery does not count as an attempt
--   returns  null; 'superseded' when a newer copy of its unique_key goes before it, and it has left the queue
--   writes   vtq.<queue>; wakes sleeping workers
--   index    primary key
CREATE OR REPLACE FUNCTION vtq._requeue(queue text, msg_id bigint, due timestamptz, is_refunded boolean)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    ended record := vtq._end_lanes(queue, ARRAY[msg_id]);
    is_key_free boolean;
BEGIN
    -- A group waits for its message. One that only must not overlap gives its slot away, and arrives again when due.
    IF starts_with(ended.lanes[1], 'x:') THEN
        EXECUTE format(
            'UPDATE vtq.%I AS m SET ready_at = ''infinity'', vt = ''infinity'', arrives_at = $2, lane_place = NULL,'
            ' refunded_ct = m.refunded_ct + $3, unstarted_ct = 0, is_suspect = false WHERE m.msg_id = $1'
            ' RETURNING m.is_key_free', queue
        ) INTO is_key_free USING msg_id, due, is_refunded::integer;
        PERFORM vtq._promote(queue, ended.lanes, ended.places);
    ELSE
        EXECUTE format(
            'UPDATE vtq.%I AS m SET ready_at = $2, vt = $2, refunded_ct = m.refunded_ct + $3, unstarted_ct = 0,'
            ' is_suspect = false WHERE m.msg_id = $1 RETURNING m.is_key_free', queue
        ) INTO is_key_free USING msg_id, due, is_refunded::integer;
    END IF;
    -- A sleeper has worked out when to wake; an earlier due time must reach it.
    PERFORM vtq._notify(queue);
    RETURN CASE WHEN is_key_free THEN vtq._retake_key(queue, msg_id) END;
END;
$$;

COMMENT ON FUNCTION vtq._requeue(text, bigint, timestamptz, boolean)
    IS 'Internal: ends a lease and gives the message its next due time.';

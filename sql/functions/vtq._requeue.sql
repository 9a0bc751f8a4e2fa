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
    requeued record;
BEGIN
    -- A group waits for its message. One that only must not overlap gives its slot away, and arrives again when due.
    EXECUTE format($sql$
        UPDATE vtq.%1$I AS m
        SET ready_at = CASE WHEN held.is_exclusive THEN 'infinity' ELSE $2 END,
            vt = CASE WHEN held.is_exclusive THEN 'infinity' ELSE $2 END,
            arrives_at = CASE WHEN held.is_exclusive THEN $2 END,
            lane_place = CASE WHEN NOT held.is_exclusive THEN m.lane_place END,
            refunded_ct = m.refunded_ct + $3,
            unstarted_ct = 0,
            is_suspect = false
        FROM (
            SELECT h.lane, coalesce(h.lane_place, h.msg_id) AS place,
                coalesce(starts_with(h.lane, 'x:'), false) AS is_exclusive
            FROM vtq.%1$I AS h
            WHERE h.msg_id = $1
        ) AS held
        WHERE m.msg_id = $1
        RETURNING m.is_key_free, held.is_exclusive, held.lane, held.place
    $sql$, queue) INTO requeued USING msg_id, due, is_refunded::integer;
    IF requeued.is_exclusive THEN
        PERFORM vtq._promote(queue, ARRAY[requeued.lane], ARRAY[requeued.place]);
    END IF;
    -- A sleeper has worked out when to wake; an earlier due time must reach it.
    PERFORM vtq._notify(queue);
    RETURN CASE WHEN requeued.is_key_free THEN vtq._retake_key(queue, msg_id) END;
END;
$$;

COMMENT ON FUNCTION vtq._requeue(text, bigint, timestamptz, boolean)
    IS 'Internal: ends a lease and gives the message its next due time.';

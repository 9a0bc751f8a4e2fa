-- vtq._allow: how many messages a read may hand out under the limits of its queue.
--   queue    queue name
--   setting  its row of the catalogue
--   wanted   how many it would
--   at       now
--   returns  0 to wanted. 0 also while another session's read of a limited queue has not committed: what that one hands
--            out cannot be seen yet
--   index    _<queue>_line
-- Messages in flight lie at the front of the line; it is looked at 10000 places deep, as a sweep does.
CREATE OR REPLACE FUNCTION vtq._allow(queue text, setting vtq._queue, wanted integer, at timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    allowed integer := wanted;
    busy integer;
    used timestamptz;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('vtq.limit.' || queue, 0)) THEN
        RETURN 0;
    END IF;
    IF setting.max_in_flight IS NOT NULL THEN
        EXECUTE format($sql$
            SELECT count(*) FROM (
                SELECT FROM unnest($1) AS p (level)
                CROSS JOIN LATERAL (
                    SELECT m.vt FROM vtq.%1$I AS m
                    WHERE m.priority = p.level AND m.ready_at <= $2 ORDER BY m.ready_at, m.msg_id LIMIT 10000
                ) AS f
                WHERE f.vt > $2
                LIMIT $3
            ) AS b
        $sql$, queue) INTO busy USING setting.priorities, at, setting.max_in_flight;
        allowed := least(allowed, setting.max_in_flight - busy);
    END IF;
    IF setting.rate_limit IS NOT NULL THEN
        SELECT r.used_until INTO used FROM vtq._rate AS r WHERE r.queue = _allow.queue AND r.lane = '';
        allowed := least(allowed, setting.rate_limit - ceil(
            extract(epoch FROM greatest(used, at) - at) / extract(epoch FROM setting.rate_interval) * setting.rate_limit
        )::integer);
    END IF;
    RETURN greatest(allowed, 0);
END;
$$;

COMMENT ON FUNCTION vtq._allow(text, vtq._queue, integer, timestamptz)
    IS 'Internal: how many messages a read may hand out under the limits of its queue.';

-- vtq._unpause_groups: lets groups go on whose dead letter is gone, in a queue where such a group pauses.
--   queue    queue name
--   groups   their keys; null or empty: none
--   writes   vtq.<queue>: the first of each that waits arrives anew, so that the next read admits it
--   index    _<queue>_lanes
CREATE OR REPLACE FUNCTION vtq._unpause_groups(queue text, groups text[])
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
BEGIN
    IF coalesce(cardinality(groups), 0) = 0
        OR (SELECT q.group_on_dead FROM vtq._queue AS q WHERE q.queue = _unpause_groups.queue) <> 'pause'
    THEN
        RETURN;
    END IF;
    EXECUTE format($sql$
        UPDATE vtq.%1$I AS m
        SET arrives_at = $2, lane_place = coalesce(m.lane_place, m.msg_id)
        WHERE m.ctid = ANY (ARRAY(
            SELECT w.ctid
            FROM unnest($1) AS g (key)
            CROSS JOIN LATERAL (
                SELECT f.ctid FROM vtq.%1$I AS f
                WHERE f.lane = 'g:' || g.key AND f.arrives_at IS NULL AND f.ready_at = 'infinity'
                ORDER BY coalesce(f.lane_place, f.msg_id), f.msg_id
                LIMIT 1
            ) AS w
        ))
    $sql$, queue) USING groups, clock_timestamp();
    PERFORM vtq._notify(queue);
END;
$$;

COMMENT ON FUNCTION vtq._unpause_groups(text, text[]) IS 'Internal: lets groups go on whose dead letter is gone.';

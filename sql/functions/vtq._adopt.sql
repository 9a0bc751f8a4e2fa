-- vtq._adopt: gives messages whose priority is no level of the queue the last level, where readers find them.
--   queue    queue name
--   returns  how many were adopted
--   writes   vtq.<queue>
--   index    _<queue>_line: one probe above, below and between the levels
-- They come from a plain INSERT, or from a send that met vtq.set_queue half-way.
CREATE OR REPLACE FUNCTION vtq._adopt(queue text)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    adopted_ct bigint;
BEGIN
    EXECUTE format($sql$
        UPDATE vtq.%1$I AS m
        SET priority = (SELECT q.priorities[array_upper(q.priorities, 1)] FROM vtq._queue AS q WHERE q.queue = $1)
        WHERE m.ctid = ANY (ARRAY(
            SELECT s.ctid
            FROM (
                SELECT lag(l.level) OVER (ORDER BY l.level) AS below, l.level AS above
                FROM (
                    SELECT unnest(q.priorities)::integer AS level FROM vtq._queue AS q WHERE q.queue = $1
                    UNION ALL
                    SELECT 32768
                ) AS l
            ) AS gap
            CROSS JOIN LATERAL (
                SELECT r.ctid
                FROM vtq.%1$I AS r
                WHERE r.priority > coalesce(gap.below, -32769) AND r.priority < gap.above
                LIMIT 1000
                FOR UPDATE SKIP LOCKED
            ) AS s
        ))
    $sql$, queue) USING queue;
    GET DIAGNOSTICS adopted_ct = ROW_COUNT;
    RETURN adopted_ct;
END;
$$;

COMMENT ON FUNCTION vtq._adopt(text) IS 'Internal: gives messages whose priority is no level of the queue the last level.';

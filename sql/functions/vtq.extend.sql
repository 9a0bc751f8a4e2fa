-- vtq.extend: lengthens live leases (the heartbeat).
--   queue               queue name
--   msg_ids, read_cts   the leases, paired by position
--   visibility_timeout  counted from now, 1 ms to 12 hours; default the queue's
--   started             which of the runs have started, paired with the leases; null: nothing is said of that
--   holder              a worker's number: the lease must be its own. A crash of the server may undo a claim that a
--                       worker has begun to run; whoever reads next gets the same read_ct, and only this tells them
--                       apart. Null: not looked at
--   returns  the msg_ids still held, in order of msg_id; one that is missing was overtaken, settled or cancelled
--   writes   vtq.<queue> (HOT, touches no index)
--   index    primary key
--   raises   VT001, 22023
CREATE OR REPLACE FUNCTION vtq.extend(
    queue text,
    msg_ids bigint[],
    read_cts integer[],
    visibility_timeout interval DEFAULT NULL,
    started boolean[] DEFAULT NULL,
    holder integer DEFAULT NULL
)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    asked_at timestamptz := clock_timestamp();
    length interval;
BEGIN
    SELECT q.visibility_timeout INTO length FROM vtq._queue AS q WHERE q.queue = extend.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    PERFORM vtq._check_leases(msg_ids, read_cts);
    length := coalesce(
        vtq._check_length('visibility_timeout', visibility_timeout, interval '1 ms', interval '12 hours'), length
    );
    RETURN QUERY EXECUTE format($sql$
        WITH held AS (
            UPDATE vtq.%1$I AS m
            SET vt = $3,
                started_read_ct = CASE WHEN lease.started THEN m.read_ct ELSE m.started_read_ct END
            FROM (
                SELECT l.msg_id, l.read_ct, l.started
                FROM unnest($1, $2, $4) AS l (msg_id, read_ct, started)
                ORDER BY l.msg_id
            ) AS lease
            WHERE m.msg_id = lease.msg_id AND m.read_ct = lease.read_ct AND m.read_ct > 0 AND m.vt <> m.ready_at
                AND (m.holder = $5 OR $5 IS NULL)
            RETURNING m.msg_id
        )
        SELECT h.msg_id FROM held AS h ORDER BY h.msg_id
    $sql$, queue)
    USING msg_ids, read_cts, asked_at + length, started, holder;
END;
$$;

COMMENT ON FUNCTION vtq.extend(text, bigint[], integer[], interval, boolean[], integer)
    IS 'Lengthens live leases from now on and returns the msg_ids still held.';

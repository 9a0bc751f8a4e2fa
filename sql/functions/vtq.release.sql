-- vtq.release: gives deliveries back at once. They do not count as attempts, and keep their place in the line.
--   queue               queue name
--   msg_ids, read_cts   the leases, paired by position
--   reason              kept with the deliveries in vtq.<queue>_attempts
--   holder              a worker's number: the lease must be its own. A crash of the server may undo a claim that a
--                       worker has begun to run; whoever reads next gets the same read_ct, and only this tells them
--                       apart. Null: not looked at
--   returns  the msg_ids released, in order of msg_id; one that is missing was stale
--   writes   vtq.<queue> (HOT, touches no index), vtq.<queue>_attempts; wakes sleeping workers
--   index    primary key
--   raises   VT001, 22023
CREATE OR REPLACE FUNCTION vtq.release(
    queue text,
    msg_ids bigint[],
    read_cts integer[],
    reason text DEFAULT NULL,
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
BEGIN
    IF NOT EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = release.queue) THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    PERFORM vtq._check_leases(msg_ids, read_cts);
    RETURN QUERY EXECUTE format($sql$
        WITH released AS (
            UPDATE vtq.%1$I AS m
            SET vt = m.ready_at, refunded_ct = m.refunded_ct + 1
            FROM (SELECT l.msg_id, l.read_ct FROM unnest($1, $2) AS l (msg_id, read_ct) ORDER BY l.msg_id) AS lease
            WHERE m.msg_id = lease.msg_id AND m.read_ct = lease.read_ct AND m.read_ct > 0 AND m.vt <> m.ready_at
                AND (m.holder = $5 OR $5 IS NULL)
            RETURNING m.msg_id, m.read_ct, m.refunded_ct, m.last_read_at, m.ready_at
        ),
        recorded AS (
            INSERT INTO vtq.%2$I AS a (msg_id, read_ct, attempt, outcome, started_at, ended_at, vt, reason)
            -- refunded_ct is risen already; the attempt is the one that this delivery would have been.
            SELECT r.msg_id, r.read_ct, r.read_ct - r.refunded_ct + 1, 'released', r.last_read_at, $3, $3, $4
            FROM released AS r
            ON CONFLICT (msg_id, read_ct) DO UPDATE
            SET outcome = excluded.outcome, ended_at = excluded.ended_at, vt = excluded.vt, reason = excluded.reason
        )
        SELECT r.msg_id FROM released AS r ORDER BY r.msg_id
    $sql$, queue, queue || '_attempts')
    USING msg_ids, read_cts, clock_timestamp(), vtq._cut(reason, 1000), holder;
    IF FOUND THEN
        EXECUTE format(
            'SELECT count(vtq._retake_key($2, m.msg_id)) FROM vtq.%I AS m'
            ' WHERE m.msg_id = ANY ($1) AND m.is_key_free AND m.vt = m.ready_at', queue
        ) USING msg_ids, queue;
        PERFORM vtq._notify(queue);
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq.release(text, bigint[], integer[], text, integer)
    IS 'Gives deliveries back at once without spending an attempt, and returns the msg_ids released.';

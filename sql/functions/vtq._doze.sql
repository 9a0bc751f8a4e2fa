-- vtq._doze: a worker announces that it sleeps, and learns how long it may.
--   queues       the queues it serves
--   worker_id    its row in vtq._worker
--   at_most      how long the announcement holds, should the worker die
--   returns  due_in: until the earliest coming due time or lapsing lease; null: none in sight ·
--            is_written: whether another transaction was writing to one of the queues at this moment
--   writes   vtq._sleeper
--   index    _<queue>_line
-- The order matters. The worker's announcement is committed first, then it calls again, and reads: whoever sends
-- after that sees the announcement and notifies; whoever was sending before holds a lock on the table until its
-- commit, which is_written shows, and the worker stays awake for it.
CREATE OR REPLACE FUNCTION vtq._doze(
    queues text[],
    worker_id text,
    at_most interval,
    OUT due_in interval,
    OUT is_written boolean
)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    at timestamptz := clock_timestamp();
    setting record;
    due timestamptz;
    earliest timestamptz;
BEGIN
    INSERT INTO vtq._sleeper AS s (queue, worker_id, until)
    SELECT q.queue, _doze.worker_id, at + at_most FROM vtq._queue AS q WHERE q.queue = ANY (queues)
    ORDER BY q.queue
    ON CONFLICT ON CONSTRAINT _sleeper_pk DO UPDATE SET until = excluded.until;
    FOR setting IN
        SELECT q.queue, q.priorities, q.paused_until, q.rate_limit, q.rate_interval,
            num_nonnulls(q.max_in_flight, q.rate_limit) > 0 AS is_limited
        FROM vtq._queue AS q WHERE q.queue = ANY (queues) ORDER BY q.queue
    LOOP
        EXECUTE format($sql$
            SELECT least(min(f.due), (
                -- One that is due and not admitted yet waits for a transaction that has its lane locked.
                SELECT greatest(m.arrives_at, $2 + interval '100 ms') FROM vtq.%1$I AS m WHERE m.arrives_at IS NOT NULL
                ORDER BY m.arrives_at, m.msg_id LIMIT 1
            ))
            FROM unnest($1) AS p (level)
            CROSS JOIN LATERAL (
                (
                    SELECT m.ready_at AS due FROM vtq.%1$I AS m
                    WHERE m.priority = p.level AND m.ready_at > $2 ORDER BY m.ready_at, m.msg_id LIMIT 1
                )
                UNION ALL
                SELECT min(h.vt) FROM (
                    SELECT m.vt FROM vtq.%1$I AS m
                    WHERE m.priority = p.level AND m.ready_at <= $2 ORDER BY m.ready_at, m.msg_id LIMIT 1000
                ) AS h
                -- What a limit holds back is ready, and no reason to wake.
                WHERE h.vt > $2 OR NOT $3
            ) AS f
        $sql$, setting.queue) INTO due USING setting.priorities, at, setting.is_limited;
        IF setting.rate_limit IS NOT NULL THEN
            -- The next token, when the bucket is empty.
            due := least(due, (
                SELECT greatest(at, r.used_until - setting.rate_interval + setting.rate_interval / setting.rate_limit)
                FROM vtq._rate AS r
                WHERE r.queue = setting.queue AND r.lane = '' AND r.used_until > at
            ));
        END IF;
        IF setting.paused_until > at THEN
            due := setting.paused_until;
        END IF;
        earliest := least(earliest, due);
    END LOOP;
    due_in := CASE WHEN isfinite(earliest) THEN greatest(earliest - at, '0') END;
    is_written := EXISTS (
        SELECT FROM pg_catalog.pg_locks AS l
        WHERE l.relation IN (SELECT to_regclass(format('vtq.%I', q)) FROM unnest(queues) AS q)
            AND l.mode = 'RowExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
    );
END;
$$;

COMMENT ON FUNCTION vtq._doze(text[], text, interval)
    IS 'Internal: a worker announces that it sleeps, and learns how long it may.';

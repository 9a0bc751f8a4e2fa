-- vtq._return: moves dead letters back into their queue: same id, whole new budget.
--   queue    queue name
--   msg_ids  the dead letters
--   delay    due this long from now; null: now
--   returns  how many were moved
--   writes   vtq.<queue>_dlq, vtq.<queue>, in one statement; the insert wakes sleeping workers
--   index    primary keys
-- refunded_ct = read_ct gives the budget back while read_ct, the fence, keeps rising. The block is stripped, the
-- trip counted in the header vtq_redrives. An expires_at or retry_until that is past is dropped: whoever redrives wants
-- a run.
CREATE OR REPLACE FUNCTION vtq._return(queue text, msg_ids bigint[], delay interval)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    due timestamptz := clock_timestamp()
        + coalesce(vtq._check_length('delay', delay, interval '0', interval '36500 days'), '0');
    setting record;
    moved_ct bigint;
BEGIN
    SELECT q.priorities, q.group_on_dead INTO setting FROM vtq._queue AS q WHERE q.queue = _return.queue;
    EXECUTE format($sql$
        WITH taken AS (
            DELETE FROM vtq.%2$I AS d
            USING (SELECT t.msg_id FROM unnest($1) AS t (msg_id) ORDER BY t.msg_id) AS wanted
            WHERE d.msg_id = wanted.msg_id
            RETURNING d.msg_id, d.enqueued_at, d.last_read_at, d.expires_at, d.read_ct, d.max_attempts, d.priority,
                d.unique_key, d.unique_until, d.unique_for, d.group_key, d.exclusive_key, d.retry_until, d.policy,
                d.headers, d.message
        )
        INSERT INTO vtq.%1$I (
            msg_id, ready_at, vt, enqueued_at, last_read_at, expires_at, read_ct, refunded_ct, max_attempts,
            priority, unique_key, unique_until, unique_for, group_key, exclusive_key, lane, lane_place, arrives_at,
            retry_until, policy, headers, message
        )
        OVERRIDING SYSTEM VALUE
        SELECT t.msg_id, l.ready_at, l.ready_at, t.enqueued_at, t.last_read_at, CASE WHEN t.expires_at > $2 THEN t.expires_at END,
            t.read_ct, t.read_ct, t.max_attempts,
            -- The queue may have lost this level since the message died.
            CASE WHEN t.priority = ANY ($3) THEN t.priority ELSE $3[array_upper($3, 1)] END,
            t.unique_key, t.unique_until, t.unique_for, t.group_key, t.exclusive_key, l.lane,
            -- A group that was paused for it goes on with it.
            CASE WHEN $4 = 'pause' AND t.group_key IS NOT NULL THEN t.msg_id END,
            CASE WHEN l.lane IS NOT NULL THEN $2 END, CASE WHEN t.retry_until > $2 THEN t.retry_until END, t.policy,
            (t.headers - 'vtq_dead_letter') || jsonb_build_object(
                'vtq_redrives', vtq._redrives(t.headers) + 1
            ),
            t.message
        FROM taken AS t
        CROSS JOIN LATERAL (
            SELECT n.lane, CASE WHEN n.lane IS NULL THEN $2 ELSE 'infinity' END AS ready_at
            FROM (SELECT vtq._lane(t.group_key, t.exclusive_key) AS lane) AS n
        ) AS l
    $sql$, queue, queue || '_dlq')
    USING msg_ids, due, setting.priorities, setting.group_on_dead;
    GET DIAGNOSTICS moved_ct = ROW_COUNT;
    RETURN moved_ct;
END;
$$;

COMMENT ON FUNCTION vtq._return(text, bigint[], interval) IS 'Internal: moves dead letters back into their queue.';

-- vtq._bury: moves messages to the dead letters, each with a block in its headers that says why.
--   queue            queue name
--   msg_ids, reasons paired by position; the caller holds the rows' locks and has recorded the last delivery
--   source           worker · sweep · operator
--   writes   vtq.<queue>, vtq.<queue>_dlq, in one statement
--   index    primary keys
--   raises   VT004 when vtq.<queue>_dlq is missing: the message stays where it is
CREATE OR REPLACE FUNCTION vtq._bury(queue text, msg_ids bigint[], reasons text[], source text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    limit_of_queue integer := (SELECT q.max_attempts FROM vtq._queue AS q WHERE q.queue = _bury.queue);
    ended record := vtq._end_lanes(queue, msg_ids);
BEGIN
    IF to_regclass(format('vtq.%I', queue || '_dlq')) IS NULL THEN
        RAISE EXCEPTION 'queue "%" has no table %, so its dead letters stay in the queue', queue,
            format('vtq.%I', queue || '_dlq')
            USING ERRCODE = 'VT004', HINT = format('Build it again: SELECT vtq.create_queue(%L);', queue);
    END IF;
    EXECUTE format($sql$
        WITH removed AS (
            DELETE FROM vtq.%1$I AS m
            USING (SELECT d.msg_id, d.reason FROM unnest($1, $2) AS d (msg_id, reason) ORDER BY d.msg_id) AS doomed
            WHERE m.msg_id = doomed.msg_id
            RETURNING m.msg_id, m.enqueued_at, m.last_read_at, m.expires_at, m.read_ct, m.refunded_ct,
                m.max_attempts, m.priority, m.unique_key, m.unique_until, m.unique_for, m.group_key, m.exclusive_key,
                m.retry_until, m.policy, m.headers, m.message, doomed.reason,
                m.vt <> m.ready_at AND m.started_read_ct < m.read_ct AS is_unstarted
        )
        INSERT INTO vtq.%2$I (
            msg_id, dead_lettered_at, enqueued_at, last_read_at, expires_at, read_ct, refunded_ct,
            max_attempts, priority, unique_key, unique_until, unique_for, group_key, exclusive_key, retry_until, policy,
            headers, message
        )
        SELECT r.msg_id, $3, r.enqueued_at, r.last_read_at, r.expires_at, r.read_ct, r.refunded_ct,
            r.max_attempts, r.priority, r.unique_key, r.unique_until, r.unique_for, r.group_key, r.exclusive_key,
            r.retry_until, r.policy,
            CASE
                WHEN r.headers IS NULL THEN '{}'
                WHEN jsonb_typeof(r.headers) = 'object' THEN r.headers
                ELSE jsonb_build_object('vtq_original_headers', r.headers)
            END || jsonb_build_object('vtq_dead_letter', jsonb_strip_nulls(jsonb_build_object(
                'version', 1,
                'reason', r.reason,
                'source', $4::text,
                'source_queue', $5::text,
                -- A delivery that lapsed before its run had started was no attempt. A holder that settles has run.
                'attempts', r.read_ct - r.refunded_ct - ($4 = 'sweep' AND r.is_unstarted)::integer,
                'max_attempts', coalesce(r.max_attempts, $6),
                'read_ct', r.read_ct,
                'first_enqueued_at', vtq._iso(r.enqueued_at),
                'dead_lettered_at', vtq._iso($3),
                'redrives', nullif(vtq._redrives(r.headers), 0),
                'error_class', e.error_class,
                'error_code', e.error_code,
                'error_message', vtq._cut(e.error_message, 1000),
                'backtrace', vtq._backtrace(e.error_detail),
                'error_attempt', e.attempt,
                'error_recorded_at', vtq._iso(e.ended_at),
                'worker', e.worker
            )))
            , r.message
        FROM removed AS r
        LEFT JOIN LATERAL (
            -- The last delivery that left an error, which need not be the last delivery. Not one of a trip before:
            -- the row that ended it granted no further run.
            SELECT a.attempt, a.ended_at, a.error_class, a.error_code, a.error_message, a.error_detail, a.worker
            FROM vtq.%3$I AS a
            WHERE a.msg_id = r.msg_id
                AND coalesce(a.error_class, a.error_code, a.error_message, a.error_detail) IS NOT NULL
                AND a.read_ct > coalesce((
                    SELECT max(b.read_ct)
                    FROM vtq.%3$I AS b
                    WHERE b.msg_id = r.msg_id AND b.read_ct < r.read_ct AND b.vt IS NULL
                        AND b.outcome NOT IN ('late_success', 'late_failure')
                ), 0)
            ORDER BY a.read_ct DESC
            LIMIT 1
        ) AS e ON true
    $sql$, queue, queue || '_dlq', queue || '_attempts')
    USING msg_ids, reasons, clock_timestamp(), source, queue, limit_of_queue;
    IF ended.lanes IS NOT NULL THEN
        -- A group may be told to stop where one of its messages died.
        PERFORM vtq._promote(queue, array_agg(e.lane), array_agg(e.place))
        FROM unnest(ended.lanes, ended.places) AS e (lane, place)
        CROSS JOIN (SELECT q.group_on_dead FROM vtq._queue AS q WHERE q.queue = _bury.queue) AS q
        WHERE q.group_on_dead = 'continue' OR NOT starts_with(e.lane, 'g:');
    END IF;
    PERFORM vtq._slot_freed(queue);
END;
$$;

COMMENT ON FUNCTION vtq._bury(text, bigint[], text[], text)
    IS 'Internal: moves messages to the dead letters, each with a block that says why.';

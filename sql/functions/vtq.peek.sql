-- vtq.peek: shows the messages that a read would hand out now, and changes nothing.
--   queue    queue name
--   qty      how many at the most, 1 to 10000
--   returns  the columns of vtq.read in hand-out order; read_ct, attempt and vt as they are, not as a read would make them
--   index    _<queue>_line
--   raises   VT001, 22023
-- A paused queue shows what it holds back.
CREATE OR REPLACE FUNCTION vtq.peek(queue text, qty integer DEFAULT 1)
RETURNS TABLE (
    msg_id bigint,
    read_ct integer,
    attempt integer,
    ready_at timestamptz,
    enqueued_at timestamptz,
    last_read_at timestamptz,
    vt timestamptz,
    headers jsonb,
    message jsonb,
    priority smallint,
    timeout interval,
    is_suspect boolean
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    setting vtq._queue;
BEGIN
    SELECT q.* INTO setting FROM vtq._queue AS q WHERE q.queue = peek.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    PERFORM vtq._check_qty(qty);
    RETURN QUERY EXECUTE format($sql$
        SELECT m.msg_id, m.read_ct, m.read_ct - m.refunded_ct, m.ready_at, m.enqueued_at, m.last_read_at, m.vt,
            m.headers, m.message, m.priority,
            CASE WHEN m.policy IS NULL THEN $5 ELSE vtq._own_timeout(m.policy, $5) END,
            m.is_suspect
        FROM unnest($1) WITH ORDINALITY AS p (level, place)
        CROSS JOIN LATERAL (
            SELECT r.*
            FROM vtq.%1$I AS r
            WHERE r.priority = p.level
                AND r.ready_at <= $2
                AND vtq._state(
                    r.ready_at, r.vt, r.read_ct, r.refunded_ct, r.started_read_ct, r.unstarted_ct,
                    coalesce(r.max_attempts, $3),
                    vtq._deadline(
                        r.ready_at, r.vt, r.read_ct, r.refunded_ct, r.started_read_ct, r.expires_at, r.retry_until
                    ), $2
                ) = 'ready'
            ORDER BY r.ready_at, r.msg_id
            LIMIT $4
        ) AS m
        -- As vtq.read has it: the levels whose front is aged, up to where they are, and then all in their order.
        ORDER BY coalesce(m.ready_at <= $6, false) DESC,
            CASE WHEN m.ready_at <= $6 THEN min(m.ready_at) OVER (PARTITION BY p.place) END,
            p.place, m.ready_at, m.msg_id
        LIMIT $4
    $sql$, queue)
    USING setting.priorities, clock_timestamp(), setting.max_attempts::integer, qty, setting.timeout,
        CASE WHEN cardinality(setting.priorities) > 1 THEN clock_timestamp() - setting.aging END;
END;
$$;

COMMENT ON FUNCTION vtq.peek(text, integer) IS 'Shows the messages that a read would hand out now, and changes nothing.';

-- vtq.metrics: what is in a queue, and for how long.
--   queue    queue name
--   exact    count every row; default false: counts past 5000 are estimated, and the call stays cheap at any size
--   returns  one row. ready .. expired: live messages by state · dead: dead letters · oldest_ready_age: how long the
--            first ready message has been due, a delayed one not counted · oldest_dead_age · last_error_class: of the
--            last attempt that left one · sent_total: messages ever sent · paused_until, pause_reason: null unless
--            paused · table_bytes: the live table with its indexes · estimated: whether a count is an estimate ·
--            error: null, or what was wrong with this queue (only from vtq.metrics_all)
--   raises   VT001
CREATE OR REPLACE FUNCTION vtq.metrics(queue text, exact boolean DEFAULT false)
RETURNS TABLE (
    queue_name text,
    ready bigint,
    in_flight bigint,
    delayed bigint,
    retrying bigint,
    waiting bigint,
    exhausted bigint,
    expired bigint,
    dead bigint,
    oldest_ready_age interval,
    oldest_dead_age interval,
    last_error_class text,
    sent_total bigint,
    paused_until timestamptz,
    pause_reason text,
    table_bytes bigint,
    estimated boolean,
    error text
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    at timestamptz := clock_timestamp();
    setting vtq._queue;
    counted record;
    letters record;
BEGIN
    SELECT q.* INTO setting FROM vtq._queue AS q WHERE q.queue = metrics.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    counted := vtq._count_states(queue, setting, exact);
    letters := vtq._count_dead(queue, exact);
    queue_name := queue;
    ready := coalesce((counted.counts ->> 'ready')::bigint, 0);
    in_flight := coalesce((counted.counts ->> 'in_flight')::bigint, 0);
    delayed := coalesce((counted.counts ->> 'delayed')::bigint, 0);
    retrying := coalesce((counted.counts ->> 'retrying')::bigint, 0);
    waiting := coalesce((counted.counts ->> 'waiting')::bigint, 0);
    exhausted := coalesce((counted.counts ->> 'exhausted')::bigint, 0);
    expired := coalesce((counted.counts ->> 'expired')::bigint, 0);
    dead := letters.dead;
    oldest_dead_age := at - letters.oldest;
    estimated := counted.is_estimated OR letters.is_estimated;
    paused_until := CASE WHEN setting.paused_until > at THEN setting.paused_until END;
    pause_reason := CASE WHEN setting.paused_until > at THEN setting.pause_reason END;
    table_bytes := pg_total_relation_size(format('vtq.%I', queue)::regclass);
    EXECUTE format($sql$
        -- A plain INSERT may say '-infinity', which older servers cannot subtract.
        SELECT $2 - CASE WHEN isfinite(min(f.ready_at)) THEN min(f.ready_at) END
        FROM unnest($1) AS p (level)
        CROSS JOIN LATERAL (
            SELECT m.ready_at FROM vtq.%1$I AS m
            WHERE m.priority = p.level AND m.ready_at <= $2
                AND vtq._state(
                    m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.unstarted_ct,
                    coalesce(m.max_attempts, $3),
                    vtq._deadline(
                        m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.expires_at, m.retry_until
                    ), $2
                ) = 'ready'
            ORDER BY m.ready_at, m.msg_id
            LIMIT 1
        ) AS f
    $sql$, queue) INTO oldest_ready_age USING setting.priorities, at, setting.max_attempts::integer;
    EXECUTE format(
        -- Never the error's text, which may quote a message: this shows in lists.
        'SELECT coalesce(a.error_class, a.error_code, a.outcome)'
        ' FROM (SELECT r.* FROM vtq.%I AS r ORDER BY r.ended_at DESC LIMIT 100) AS a'
        ' WHERE coalesce(a.error_class, a.error_code, a.error_message) IS NOT NULL LIMIT 1', queue || '_attempts'
    ) INTO last_error_class;
    EXECUTE format(
        'SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM vtq.%I', '_' || queue || '_seq'
    ) INTO sent_total;
    RETURN NEXT;
END;
$$;

COMMENT ON FUNCTION vtq.metrics(text, boolean)
    IS 'What is in a queue by state, and for how long. Estimates past 5000 unless exact => true.';

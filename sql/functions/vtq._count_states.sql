-- vtq._count_states: counts a queue's live messages by state.
--   queue        queue name
--   setting      its row of the catalogue
--   is_exact     count every row, however many
--   returns  counts {"ready", "in_flight", ...}, absent where 0 · is_estimated
--   index    _<queue>_line
-- Up to 5000 rows due and 5000 not yet due are counted one by one. For the side that has more, 300 pages are sampled at random
-- and scaled up: the cost stays the same at five million rows.
CREATE OR REPLACE FUNCTION vtq._count_states(
    queue text,
    setting vtq._queue,
    is_exact boolean,
    OUT counts jsonb,
    OUT is_estimated boolean
)
RETURNS record
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    counted_to CONSTANT integer := 5000;
    pages_sampled CONSTANT double precision := 300;
    pages bigint := pg_relation_size(format('vtq.%I', queue)::regclass) / current_setting('block_size')::bigint;
    -- The state of row m at instant $2 in a queue with limit $3.
    state_of CONSTANT text := 'vtq._state(m.ready_at, m.vt, m.read_ct, m.refunded_ct,'
        ' m.started_read_ct, m.unstarted_ct, coalesce(m.max_attempts, $3),'
        ' vtq._deadline(m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.expires_at, m.retry_until), $2)';
    at timestamptz := clock_timestamp();
    due_is_whole boolean := false;
    later_is_whole boolean := false;
    sampled jsonb;
BEGIN
    counts := '{}';
    IF NOT is_exact THEN
        EXECUTE format($sql$
            WITH near AS MATERIALIZED (
                SELECT s.state
                FROM unnest($1) AS p (level)
                CROSS JOIN LATERAL (
                    SELECT * FROM (
                        SELECT %2$s AS state FROM vtq.%1$I AS m
                        WHERE m.priority = p.level AND m.ready_at <= $2 ORDER BY m.ready_at, m.msg_id LIMIT $4
                    ) AS due
                    UNION ALL
                    SELECT * FROM (
                        SELECT %2$s AS state FROM vtq.%1$I AS m
                        WHERE m.priority = p.level AND m.ready_at > $2 ORDER BY m.ready_at, m.msg_id LIMIT $4
                    ) AS later
                ) AS s
            ),
            grouped AS (
                SELECT n.state, count(*) AS ct, n.state IN ('delayed', 'retrying', 'waiting') AS is_later FROM near AS n GROUP BY n.state
            )
            SELECT coalesce(jsonb_object_agg(g.state, g.ct), '{}'),
                coalesce(sum(g.ct) FILTER (WHERE NOT g.is_later), 0) < $4,
                coalesce(sum(g.ct) FILTER (WHERE g.is_later), 0) < $4
            FROM grouped AS g
        $sql$, queue, state_of)
        INTO counts, due_is_whole, later_is_whole
        USING setting.priorities, at, setting.max_attempts::integer, counted_to;
    END IF;
    is_estimated := NOT is_exact AND NOT (due_is_whole AND later_is_whole) AND pages > pages_sampled;
    IF due_is_whole AND later_is_whole THEN
        RETURN;
    END IF;
    EXECUTE format($sql$
        SELECT coalesce(jsonb_object_agg(g.state, g.ct), '{}')
        FROM (
            SELECT s.state, round(count(*) * $4)::bigint AS ct
            FROM (SELECT %2$s AS state FROM vtq.%1$I AS m %3$s) AS s
            GROUP BY s.state
        ) AS g
    $sql$, queue, state_of, CASE WHEN is_estimated THEN 'TABLESAMPLE SYSTEM ($5)' ELSE '' END)
    INTO sampled
    USING setting.priorities, at, setting.max_attempts::integer,
        CASE WHEN is_estimated THEN pages / pages_sampled ELSE 1 END,
        least(100, 100 * pages_sampled / greatest(pages, 1));
    -- A side that was counted whole is exact; the sample speaks for the other.
    SELECT coalesce(jsonb_object_agg(c.state, c.ct), '{}') INTO counts
    FROM (
        SELECT s.key AS state, s.value AS ct FROM jsonb_each(sampled) AS s
        WHERE NOT CASE WHEN s.key IN ('delayed', 'retrying') THEN later_is_whole ELSE due_is_whole END
        UNION ALL
        SELECT n.key, n.value FROM jsonb_each(counts) AS n
        WHERE CASE WHEN n.key IN ('delayed', 'retrying') THEN later_is_whole ELSE due_is_whole END
    ) AS c;
END;
$$;

COMMENT ON FUNCTION vtq._count_states(text, vtq._queue, boolean) IS 'Internal: counts a queue''s live messages by state.';

-- vtq._count_dead: counts a queue's dead letters.
--   queue      queue name
--   is_exact   count every row, however many
--   returns  dead · oldest: when the first of them died · is_estimated: past 5000 it is the planner's number
--   index    _<queue>_dlq_age
--   raises   VT004
CREATE OR REPLACE FUNCTION vtq._count_dead(
    queue text,
    is_exact boolean,
    OUT dead bigint,
    OUT oldest timestamptz,
    OUT is_estimated boolean
)
RETURNS record
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    counted_to CONSTANT integer := 5000;
    tuples double precision;
BEGIN
    PERFORM vtq._check_dlq(queue);
    EXECUTE format(
        'SELECT count(*), min(d.dead_lettered_at) FROM'
        ' (SELECT c.dead_lettered_at FROM vtq.%I AS c ORDER BY c.dead_lettered_at, c.msg_id LIMIT $1) AS d',
        queue || '_dlq'
    ) INTO dead, oldest USING CASE WHEN is_exact THEN NULL ELSE counted_to + 1 END;
    is_estimated := NOT is_exact AND dead > counted_to;
    IF is_estimated THEN
        SELECT c.reltuples INTO tuples FROM pg_catalog.pg_class AS c
        WHERE c.oid = format('vtq.%I', queue || '_dlq')::regclass;
        dead := greatest(dead, tuples::bigint);
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._count_dead(text, boolean) IS 'Internal: counts a queue''s dead letters.';

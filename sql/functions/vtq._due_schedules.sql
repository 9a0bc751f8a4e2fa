-- vtq._due_schedules: the schedules that a worker has to look at next, those that are due and the one after them.
--   qty        the most rows
--   only_name  the name of the one to answer, due or not; null: all
--   returns  at: the database's clock · due_in: how long until it is due, not above 0 when it is · what it says ·
--            next_at: null, no worker has worked it out yet. In order of their being due
--   index    _schedule_due
CREATE OR REPLACE FUNCTION vtq._due_schedules(qty integer, only_name text DEFAULT NULL)
RETURNS TABLE (
    at timestamptz,
    due_in interval,
    name text,
    revision bigint,
    cron text,
    timezone text,
    missed text,
    missed_cap integer,
    grace interval,
    next_at timestamptz
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    started timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
    SELECT started, CASE WHEN isfinite(s.due_at) THEN s.due_at - started ELSE interval '0' END, s.name, s.revision,
        s.cron, s.timezone, s.missed, s.missed_cap, s.grace, CASE WHEN isfinite(s.next_at) THEN s.next_at END
    FROM vtq._schedule AS s
    WHERE s.due_at < 'infinity' AND (only_name IS NULL OR s.name = only_name)
    ORDER BY s.due_at, s.name
    LIMIT qty;
END;
$$;

COMMENT ON FUNCTION vtq._due_schedules(integer, text)
    IS 'Internal: the schedules that a worker has to look at next.';

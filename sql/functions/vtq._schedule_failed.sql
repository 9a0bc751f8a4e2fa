-- vtq._schedule_failed: writes down why a schedule cannot send, and when to try again.
--   name, revision  the schedule as the caller read it; one that has changed is left alone
--   error           the sentence
--   retry_in        how long until a worker looks again
--   writes   vtq._schedule
CREATE OR REPLACE FUNCTION vtq._schedule_failed(name text, revision bigint, error text, retry_in interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    started timestamptz := clock_timestamp();
BEGIN
    UPDATE vtq._schedule AS s
    SET error = left(_schedule_failed.error, 1000),
        error_at = CASE WHEN s.error IS NULL THEN started ELSE s.error_at END,
        due_at = started + retry_in
    WHERE s.name = _schedule_failed.name
        AND s.revision = _schedule_failed.revision
        AND s.due_at <= started;
END;
$$;

COMMENT ON FUNCTION vtq._schedule_failed(text, bigint, text, interval)
    IS 'Internal: writes down why a schedule cannot send, and when to try again.';

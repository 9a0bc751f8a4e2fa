-- vtq.schedule_pause: keeps a schedule from sending, until it is resumed.
--   name     name of the schedule
--   reason   shown wherever the schedule is
--   until    it goes on by itself at this instant; default: never
--   returns  true when it was running, false when it was paused (the reason and the instant are replaced)
--   writes   vtq._schedule
--   raises   VT006; 22023 for an instant that is past
-- Ticks that fall into the pause are missed: what becomes of them, the schedule says.
CREATE OR REPLACE FUNCTION vtq.schedule_pause(
    name text,
    reason text DEFAULT NULL,
    until timestamptz DEFAULT 'infinity'
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    started timestamptz := clock_timestamp();
    was_running boolean;
BEGIN
    IF until IS NULL OR until <= started THEN
        RAISE EXCEPTION 'until % is not allowed: it must lie in the future', coalesce(until::text, 'null')
            USING ERRCODE = '22023';
    END IF;
    SELECT s.paused_until IS NULL OR s.paused_until <= started INTO was_running
    FROM vtq._schedule AS s WHERE s.name = schedule_pause.name FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM vtq._no_schedule(name);
    END IF;
    UPDATE vtq._schedule AS s
    SET revision = DEFAULT, paused_until = until, pause_reason = reason, due_at = until
    WHERE s.name = schedule_pause.name;
    RETURN was_running;
END;
$$;

COMMENT ON FUNCTION vtq.schedule_pause(text, text, timestamptz)
    IS 'Keeps a schedule from sending until vtq.schedule_resume, or until an instant.';

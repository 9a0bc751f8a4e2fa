-- vtq.schedule_resume: ends the pause of a schedule.
--   name     name of the schedule
--   returns  true when it was paused, false when it was running
--   writes   vtq._schedule; NOTIFY vtq__schedule
--   raises   VT006
CREATE OR REPLACE FUNCTION vtq.schedule_resume(name text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    was_paused boolean;
BEGIN
    SELECT coalesce(s.paused_until > clock_timestamp(), false) INTO was_paused
    FROM vtq._schedule AS s WHERE s.name = schedule_resume.name FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM vtq._no_schedule(name);
    END IF;
    UPDATE vtq._schedule AS s
    SET revision = DEFAULT, paused_until = NULL, pause_reason = NULL, due_at = s.next_at
    WHERE s.name = schedule_resume.name;
    PERFORM pg_notify('vtq__schedule', '');
    RETURN was_paused;
END;
$$;

COMMENT ON FUNCTION vtq.schedule_resume(text) IS 'Ends the pause of a schedule. What was missed meanwhile is skipped or made up for, as the schedule says.';

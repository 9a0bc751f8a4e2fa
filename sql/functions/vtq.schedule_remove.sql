-- vtq.schedule_remove: removes a schedule. Messages that it has sent stay.
--   name     name of the schedule
--   returns  true when it was there, false when not
--   writes   vtq._schedule, vtq._tick
--   raises   22023
CREATE OR REPLACE FUNCTION vtq.schedule_remove(name text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    PERFORM vtq._check_schedule(name);
    DELETE FROM vtq._schedule AS s WHERE s.name = schedule_remove.name;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM vtq._tick AS t WHERE t.name = schedule_remove.name;
    RETURN true;
END;
$$;

COMMENT ON FUNCTION vtq.schedule_remove(text) IS 'Removes a schedule; false when there is none of that name. Messages that it has sent stay.';

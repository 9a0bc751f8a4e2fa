-- vtq._promote: lets the next messages of lanes run, by the queue's own promote.
--   queue          queue name
--   lanes, places  of the heads that ended, paired by position; null: none did
CREATE OR REPLACE FUNCTION vtq._promote(queue text, lanes text[], places bigint[])
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    IF lanes IS NOT NULL THEN
        EXECUTE 'SELECT ' || vtq._own(queue, 'promote') || '($1, $2)' USING lanes, places;
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._promote(text, text[], bigint[]) IS 'Internal: lets the next messages of lanes run.';

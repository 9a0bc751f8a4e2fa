-- vtq._check_cron: refuses what cannot be a plan, as far as the database can tell.
--   cron      the expression
--   timezone  the time zone
--   raises    22023
-- Whether every field makes sense is for a worker to say: it shows in vtq.schedule_list. The library and the program
-- check all of it before they call.
CREATE OR REPLACE FUNCTION vtq._check_cron(cron text, timezone text)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    field_ct integer := array_length(regexp_split_to_array(btrim(cron), '[[:space:]]+'), 1);
    is_zone boolean;
BEGIN
    IF cron IS NULL OR octet_length(cron) > 500 OR (field_ct NOT BETWEEN 5 AND 7 AND cron !~ '^@[a-zA-Z]+$') THEN
        RAISE EXCEPTION 'cron % is not allowed: it must have five fields (minute, hour, day, month, day of the week), six with seconds in front, seven with a year behind, or be a nickname such as @daily',
            coalesce('"' || left(cron, 80) || '"', 'null')
            USING ERRCODE = '22023';
    END IF;
    BEGIN
        is_zone := (timestamptz '2000-01-01 00:00:00+00' AT TIME ZONE timezone) IS NOT NULL;
    EXCEPTION WHEN invalid_parameter_value THEN
        is_zone := false;
    END;
    IF NOT is_zone THEN
        RAISE EXCEPTION 'timezone % is not known: give a name of the IANA database, such as Europe/Berlin or UTC',
            coalesce('"' || left(timezone, 80) || '"', 'null')
            USING ERRCODE = '22023';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_cron(text, text) IS 'Internal: refuses what cannot be a cron expression or a time zone.';

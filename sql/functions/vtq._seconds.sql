-- vtq._seconds: reads a length of time from an option: a number of seconds, or an interval in text.
--   name     the option, for the sentence
--   value    the option's value; JSON null passes as null
--   lowest, highest   the range that is allowed
--   returns  the length
--   raises   22023 with the rule
CREATE OR REPLACE FUNCTION vtq._seconds(name text, value jsonb, lowest interval, highest interval)
RETURNS interval
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    length interval;
BEGIN
    IF value IS NULL OR jsonb_typeof(value) = 'null' THEN
        RETURN NULL;
    END IF;
    BEGIN
        IF jsonb_typeof(value) = 'number' THEN
            -- Cut at some millennia, past every range: PostgreSQL 14 lets a length overflow and cannot print it then.
            length := make_interval(secs => greatest(-1e11, least(1e11, (value #>> '{}')::numeric))::double precision);
        ELSIF jsonb_typeof(value) = 'string' THEN
            length := (value #>> '{}')::interval;
        END IF;
    EXCEPTION WHEN data_exception THEN
        length := NULL;
    END;
    IF length IS NULL THEN
        RAISE EXCEPTION '% % is not a length of time: give seconds as a number, or an interval such as "30 s"',
            name, left(value::text, 80)
            USING ERRCODE = '22023';
    END IF;
    RETURN vtq._check_length(name, length, lowest, highest);
END;
$$;

COMMENT ON FUNCTION vtq._seconds(text, jsonb, interval, interval)
    IS 'Internal: reads a length of time from an option, in seconds or as an interval.';

-- vtq._check_length: checks a length of time and turns it into a fixed number of seconds.
--   name              the argument, for the sentence
--   value             the length; null passes
--   lowest, highest       the range that is allowed
--   returns  the same length in seconds, free of months and days
--   raises   22023 with the rule
-- A day added to a timestamptz is 23 hours on some days of some time zones. A length of vtq never is.
CREATE OR REPLACE FUNCTION vtq._check_length(name text, value interval, lowest interval, highest interval)
RETURNS interval
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF value IS NULL THEN
        RETURN NULL;
    END IF;
    IF value < lowest OR value > highest THEN
        RAISE EXCEPTION '% % is not allowed: it must be from % to %', name, value, lowest, highest
            USING ERRCODE = '22023';
    END IF;
    RETURN make_interval(secs => extract(epoch FROM value)::double precision);
END;
$$;

COMMENT ON FUNCTION vtq._check_length(text, interval, interval, interval)
    IS 'Internal: checks a length of time and turns it into seconds.';

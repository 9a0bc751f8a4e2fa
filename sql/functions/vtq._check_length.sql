-- vtq._check_length: checks a length of time and turns it into a fixed number of seconds.
--   name              the argument, for the sentence
--   value             the length; null passes
--   lowest, highest       the range that is allowed
--   returns  the same length in seconds, free of months and days
--   raises   22023 with the rule
-- A day added to a timestamptz is 23 hours on some days of some time zones. A length of vtq never is.
-- Compared as seconds: intervals compare with a year of 360 days and are added with one of 365.25, so that
-- "-1 year 360 days" would pass as zero.
CREATE OR REPLACE FUNCTION vtq._check_length(name text, value interval, lowest interval, highest interval)
RETURNS interval
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
DECLARE
    seconds numeric := extract(epoch FROM value);
BEGIN
    IF value IS NULL THEN
        RETURN NULL;
    END IF;
    IF seconds NOT BETWEEN extract(epoch FROM lowest) AND extract(epoch FROM highest) THEN
        RAISE EXCEPTION '% % is not allowed: it must be from % to %', name, value, lowest, highest
            USING ERRCODE = '22023';
    END IF;
    RETURN make_interval(secs => seconds::double precision);
END;
$$;

COMMENT ON FUNCTION vtq._check_length(text, interval, interval, interval)
    IS 'Internal: checks a length of time and turns it into seconds.';

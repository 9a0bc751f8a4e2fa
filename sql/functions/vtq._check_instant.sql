-- vtq._check_instant: refuses an instant that lies outside of any calendar in use.
--   name     the argument, for the sentence
--   value    the instant; null passes
--   raises   22023 with the rule, for the infinities and for years past 9999
CREATE OR REPLACE FUNCTION vtq._check_instant(name text, value timestamptz)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF value NOT BETWEEN timestamptz '0001-01-01 00:00:00+00' AND timestamptz '9999-12-31 00:00:00+00' THEN
        RAISE EXCEPTION '% % is not allowed: it must be a finite instant from the year 1 to 9999', name, value
            USING ERRCODE = '22023';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_instant(text, timestamptz) IS 'Internal: refuses infinite and absurd instants.';

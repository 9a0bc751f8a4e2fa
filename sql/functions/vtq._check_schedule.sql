-- vtq._check_schedule: refuses a name that no schedule can have.
--   name     the name as given
--   raises   22023 with the rule
CREATE OR REPLACE FUNCTION vtq._check_schedule(name text)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF name IS NULL
        OR octet_length(name) NOT BETWEEN 1 AND 100
        OR name ~ '[[:cntrl:]]'
        OR name <> btrim(name)
    THEN
        RAISE EXCEPTION 'schedule name % is not allowed: 1 to 100 bytes, without control characters, not beginning or ending with a blank',
            coalesce('"' || left(name, 80) || '"', 'null')
            USING ERRCODE = '22023';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_schedule(text) IS 'Internal: refuses a name that no schedule can have, and says the rule.';

-- vtq._broken_number: says which rule a JSON number breaks.
--   value        the JSON value
--   lowest, highest  the range that is allowed
--   returns  the rule in words, or null when the value keeps it
CREATE OR REPLACE FUNCTION vtq._broken_number(value jsonb, lowest numeric, highest numeric)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog
AS $$
    SELECT CASE
        WHEN jsonb_typeof(value) = 'number' AND (value #>> '{}')::numeric BETWEEN lowest AND highest THEN NULL
        ELSE format('a number from %s to %s', lowest, highest)
    END
$$;

COMMENT ON FUNCTION vtq._broken_number(jsonb, numeric, numeric)
    IS 'Internal: the rule that a JSON number breaks, or null.';

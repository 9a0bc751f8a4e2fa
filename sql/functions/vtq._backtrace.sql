-- vtq._backtrace: what a dead letter's block keeps of an error's detail.
--   detail   the detail; null passes
--   returns  its first 10 lines, at most 2000 characters
CREATE OR REPLACE FUNCTION vtq._backtrace(detail text)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog
AS $$
    SELECT vtq._cut(array_to_string((string_to_array(detail, E'\n'))[1:10], E'\n'), 2000)
$$;

COMMENT ON FUNCTION vtq._backtrace(text) IS 'Internal: the first 10 lines of an error''s detail.';

-- vtq._cut: cuts a text at a number of characters, with a marker at the cut.
--   value    the text; null passes
--   most     characters that are kept, the marker included
CREATE OR REPLACE FUNCTION vtq._cut(value text, most integer)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog
AS $$
    SELECT CASE WHEN length(value) <= most THEN value ELSE left(value, most - 1) || '…' END
$$;

COMMENT ON FUNCTION vtq._cut(text, integer) IS 'Internal: cuts a text at a number of characters, with a marker at the cut.';

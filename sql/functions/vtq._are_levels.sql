-- vtq._are_levels: whether a JSON value lists the priority levels of a queue.
--   value    the JSON value
--   returns  true for an array of 1 to 16 different smallints
CREATE OR REPLACE FUNCTION vtq._are_levels(value jsonb)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog
AS $$
    SELECT jsonb_typeof(value) = 'array'
        AND jsonb_array_length(value) BETWEEN 1 AND 16
        AND (
            SELECT count(DISTINCT level) = count(*)
                AND bool_and(vtq._broken_number(level, -32768, 32767) IS NULL)
                -- A cast in AND is not sure to come after the check; CASE is.
                AND bool_and(CASE WHEN jsonb_typeof(level) = 'number' THEN (level #>> '{}')::numeric % 1 = 0 END)
            FROM jsonb_array_elements(CASE WHEN jsonb_typeof(value) = 'array' THEN value ELSE '[]' END) AS level
        )
$$;

COMMENT ON FUNCTION vtq._are_levels(jsonb) IS 'Internal: whether a JSON value lists the priority levels of a queue.';

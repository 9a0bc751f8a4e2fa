-- vtq._layers: the numbers that decide over a message, each with the layer it comes from.
--   setting       its queue's row of the catalogue
--   max_attempts  the message's own, or null
--   policy        the message's own, or null
--   returns  {"max_attempts": {"value", "from"}, "timeout": ..., "visibility_timeout": ..., "backoff": {"base": ...}}
CREATE OR REPLACE FUNCTION vtq._layers(setting vtq._queue, max_attempts smallint, policy jsonb)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = pg_catalog
AS $$
    WITH layer (name, place, options) AS (
        VALUES
            ('message', 1, coalesce(policy, '{}') || CASE
                WHEN max_attempts IS NULL THEN '{}'
                ELSE jsonb_build_object('max_attempts', max_attempts)
            END),
            ('queue', 2, (setting).options),
            ('default', 3, vtq._default_options())
    ),
    plain AS (
        SELECT DISTINCT ON (o.key) o.key, jsonb_build_object('value', o.value, 'from', l.name) AS said
        FROM layer AS l CROSS JOIN LATERAL jsonb_each(l.options) AS o
        WHERE o.key IN ('max_attempts', 'timeout', 'visibility_timeout')
        ORDER BY o.key, l.place
    ),
    backoff AS (
        SELECT DISTINCT ON (o.key) o.key, jsonb_build_object('value', o.value, 'from', l.name) AS said
        FROM layer AS l CROSS JOIN LATERAL jsonb_each(l.options -> 'backoff') AS o
        ORDER BY o.key, l.place
    )
    SELECT (SELECT jsonb_object_agg(p.key, p.said) FROM plain AS p)
        || jsonb_build_object('backoff', (SELECT jsonb_object_agg(b.key, b.said) FROM backoff AS b))
$$;

COMMENT ON FUNCTION vtq._layers(vtq._queue, smallint, jsonb)
    IS 'Internal: the numbers that decide over a message, each with the layer it comes from.';

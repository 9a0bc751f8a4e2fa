-- vtq._redrives: how often a message was redriven.
--   headers  the message's headers; null passes
--   returns  the number under vtq_redrives; 0 where there is none, or none that vtq can have written
CREATE OR REPLACE FUNCTION vtq._redrives(headers jsonb)
RETURNS integer
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog
AS $$
    SELECT CASE
        WHEN vtq._broken_number(headers -> 'vtq_redrives', 0, 1000000000) IS NULL
            THEN (headers ->> 'vtq_redrives')::numeric::integer
        ELSE 0
    END
$$;

COMMENT ON FUNCTION vtq._redrives(jsonb) IS 'Internal: how often a message was redriven.';

-- vtq._is_rate: whether an option is a rate: null, or {"limit", "interval"}.
--   rate     as given
--   raises   22023 for an interval that is no length
CREATE OR REPLACE FUNCTION vtq._is_rate(rate jsonb)
RETURNS boolean
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF jsonb_typeof(rate) = 'null' THEN
        RETURN true;
    END IF;
    IF jsonb_typeof(rate) <> 'object' OR NOT rate ?& '{limit,interval}' OR rate - '{limit,interval}'::text[] <> '{}' THEN
        RETURN false;
    END IF;
    IF vtq._broken_number(rate -> 'limit', 1, 1000000) IS NOT NULL OR (rate ->> 'limit')::numeric % 1 <> 0 THEN
        RETURN false;
    END IF;
    RETURN vtq._seconds('interval', rate -> 'interval', '1 ms', '365 days') IS NOT NULL;
END;
$$;

COMMENT ON FUNCTION vtq._is_rate(jsonb) IS 'Internal: whether an option is a rate.';

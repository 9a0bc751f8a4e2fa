-- vtq._check_qty: refuses a number of rows that makes no sense.
--   qty      as given to a verb
--   raises   22023 with the range
CREATE OR REPLACE FUNCTION vtq._check_qty(qty integer)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF qty IS NULL OR qty NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'qty % is not allowed: it must be from 1 to 10000', coalesce(qty::text, 'null')
            USING ERRCODE = '22023';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_qty(integer) IS 'Internal: refuses a number of rows that makes no sense.';

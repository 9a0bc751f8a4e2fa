-- vtq._filter_instant: reads an instant from a filter.
--   filter     a filter of vtq.redrive_all
--   key        the key to read
--   otherwise  the value where the key is absent
--   raises   22023 for a filter that is no object, or a value that is no instant
CREATE OR REPLACE FUNCTION vtq._filter_instant(filter jsonb, key text, otherwise timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF filter IS NULL OR jsonb_typeof(filter) <> 'object' THEN
        RAISE EXCEPTION 'filter % is not allowed: give an object such as {"reason": "worker_died"}',
            coalesce(left(filter::text, 80), 'null') USING ERRCODE = '22023';
    END IF;
    RETURN coalesce((filter ->> key)::timestamptz, otherwise);
EXCEPTION WHEN datetime_field_overflow OR invalid_datetime_format THEN
    RAISE EXCEPTION 'filter key "%" is %, which is not an instant', key, left((filter -> key)::text, 80)
        USING ERRCODE = '22023';
END;
$$;

COMMENT ON FUNCTION vtq._filter_instant(jsonb, text, timestamptz) IS 'Internal: reads an instant from a filter.';

-- vtq._iso: an instant as ISO 8601 in UTC, to the microsecond.
--   at       the instant; null passes
CREATE OR REPLACE FUNCTION vtq._iso(at timestamptz)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = pg_catalog
AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

COMMENT ON FUNCTION vtq._iso(timestamptz) IS 'Internal: an instant as ISO 8601 in UTC.';

-- vtq._letter_filter: takes a filter of dead letters apart.
--   filter   as given to vtq.redrive_all
--   returns  dead_before, dead_after: the instants, or infinite ones · block: what the block of a letter must hold
--   raises   22023
CREATE OR REPLACE FUNCTION vtq._letter_filter(
    filter jsonb,
    OUT dead_before timestamptz,
    OUT dead_after timestamptz,
    OUT block jsonb
)
RETURNS record
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    unknown text;
BEGIN
    dead_before := vtq._filter_instant(filter, 'dead_before', 'infinity');
    dead_after := vtq._filter_instant(filter, 'dead_after', '-infinity');
    block := filter - '{dead_before,dead_after}'::text[];
    SELECT k INTO unknown FROM jsonb_object_keys(block) AS k
    WHERE k NOT IN ('reason', 'error_class', 'error_code') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'filter key "%" is not known: there are reason, error_class, error_code, dead_before, dead_after',
            unknown USING ERRCODE = '22023';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._letter_filter(jsonb) IS 'Internal: takes a filter of dead letters apart.';

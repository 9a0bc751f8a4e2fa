-- vtq._no_schedule: refuses a schedule that does not exist, or a name that no schedule can have.
--   name     the name as given
--   raises   22023 for a name against the rule, VT006 for a schedule that is not there
CREATE OR REPLACE FUNCTION vtq._no_schedule(name text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    PERFORM vtq._check_schedule(name);
    RAISE EXCEPTION 'schedule "%" does not exist', name USING ERRCODE = 'VT006';
END;
$$;

COMMENT ON FUNCTION vtq._no_schedule(text) IS 'Internal: refuses a schedule that does not exist, or a name against the rule.';

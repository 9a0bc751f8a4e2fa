-- vtq._no_queue: refuses a queue that does not exist, or a name that no queue can have.
--   queue    queue name as given
--   raises   22023 for a name against the rule, VT001 for a queue that is not there
CREATE OR REPLACE FUNCTION vtq._no_queue(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    PERFORM vtq._check_queue(queue);
    RAISE EXCEPTION 'queue "%" does not exist', queue
        USING ERRCODE = 'VT001', HINT = format('Create it: SELECT vtq.create_queue(%L);', queue);
END;
$$;

COMMENT ON FUNCTION vtq._no_queue(text) IS 'Internal: refuses a queue that does not exist, or a name against the rule.';

-- vtq._no_queue: refuses a queue that does not exist, a name that no queue can have, or a queue without its functions.
--   queue    queue name as given
--   raises   22023 for a name against the rule, VT001 for a queue that is not there, VT004 for one that is
CREATE OR REPLACE FUNCTION vtq._no_queue(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    PERFORM vtq._check_queue(queue);
    IF EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = _no_queue.queue) THEN
        RAISE EXCEPTION 'queue "%" lacks its own functions, such as %', queue, vtq._own(queue, 'read')
            USING ERRCODE = 'VT004', HINT = format('Build them again: SELECT vtq.create_queue(%L);', queue);
    END IF;
    RAISE EXCEPTION 'queue "%" does not exist', queue
        USING ERRCODE = 'VT001', HINT = format('Create it: SELECT vtq.create_queue(%L);', queue);
END;
$$;

COMMENT ON FUNCTION vtq._no_queue(text) IS 'Internal: refuses a queue that does not exist, or a name against the rule.';

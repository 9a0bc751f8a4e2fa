-- vtq._create_verbs: builds a queue's own functions, or builds them anew, and what they share.
--   queue    queue name; its four tables are there
--   writes   the functions vtq."_<queue>.<verb>"; the sequence vtq."_<queue>_front"
-- Open to PUBLIC, so that they need no grants beside those of the verbs: a caller's rights on the tables decide.
-- A role that may install vtq need not own every queue's functions: what it may not replace is left as it is.
CREATE OR REPLACE FUNCTION vtq._create_verbs(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    PERFORM vtq._create_front(queue);
    PERFORM vtq._create_read(queue);
    PERFORM vtq._create_ack(queue);
    PERFORM vtq._create_extend(queue);
    PERFORM vtq._create_send(queue);
    PERFORM vtq._create_send_batch(queue);
    PERFORM vtq._create_admit_groups(queue);
    PERFORM vtq._create_admit(queue);
    PERFORM vtq._create_promote(queue);
    EXECUTE (
        SELECT string_agg(format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC;', own), ' ')
        FROM vtq._own_functions(queue) AS own
    );
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'queue "%" keeps the functions that it has: they belong to another role', queue
        USING HINT = format('Its owner can build them anew: SELECT vtq._create_verbs(%L);', queue);
END;
$$;

COMMENT ON FUNCTION vtq._create_verbs(text) IS 'Internal: builds a queue''s own functions, or builds them anew.';

-- vtq._own_functions: the names of all functions that a queue has of its own, as vtq._own makes them.
--   queue    queue name
-- The one list of them: what is built, looked for and dropped goes by it. vtq._create_verbs builds each.
CREATE OR REPLACE FUNCTION vtq._own_functions(queue text)
RETURNS SETOF text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog
AS $$
    SELECT vtq._own($1, v.verb)
    FROM unnest('{read,ack,extend,send,send_batch,admit,admit_groups,promote}'::text[]) AS v (verb)
$$;

COMMENT ON FUNCTION vtq._own_functions(text) IS 'Internal: the names of all functions that a queue has of its own.';

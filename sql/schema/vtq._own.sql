-- vtq._own: the name of a queue's own function for a verb, quoted, with its schema.
--   queue    queue name as given; null makes a name that no function has
--   verb     read · ack · extend · send · send_batch · admit · admit_groups · promote
-- A leading "_" and a "." keep these names apart from those of any other function.
-- A plain SQL expression without SET, so that the planner folds it into what uses it.
CREATE OR REPLACE FUNCTION vtq._own(queue text, verb text)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
AS $$
    SELECT 'vtq.' || quote_ident('_' || coalesce(queue, '') || '.' || verb)
$$;

COMMENT ON FUNCTION vtq._own(text, text) IS 'Internal: the name of a queue''s own function for a verb.';

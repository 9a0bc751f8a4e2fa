-- vtq._lane: the lane that a message waits its turn in.
--   group_key      the message's group
--   exclusive_key  or its key of which only so many run at once
--   returns  null for a message that waits for no other
-- A plain SQL expression without SET, so that the planner folds it into what uses it.
CREATE OR REPLACE FUNCTION vtq._lane(group_key text, exclusive_key text)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
AS $$
    SELECT coalesce('g:' || group_key, 'x:' || exclusive_key)
$$;

COMMENT ON FUNCTION vtq._lane(text, text) IS 'Internal: the lane that a message waits its turn in.';

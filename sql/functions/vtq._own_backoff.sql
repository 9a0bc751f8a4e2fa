-- vtq._own_backoff: the backoff of a message: its own policy laid over its queue's.
--   below    the backoff of the queue
--   policy   the message's policy; null passes
--   returns  the two together, or the queue's alone where the message's cannot be read or no longer fits it
-- vtq.send checks that the two fit; but a plain INSERT does not, and vtq.set_queue may change the queue's later. A
-- failure must be recorded all the same.
CREATE OR REPLACE FUNCTION vtq._own_backoff(below jsonb, policy jsonb)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF policy IS NULL OR jsonb_typeof(policy) <> 'object' THEN
        RETURN below;
    END IF;
    RETURN vtq._check_backoff(below, policy -> 'backoff');
EXCEPTION WHEN data_exception THEN
    RETURN below;
END;
$$;

COMMENT ON FUNCTION vtq._own_backoff(jsonb, jsonb)
    IS 'Internal: the backoff of a message: its own policy laid over its queue''s.';

-- vtq._own_timeout: how long a run of a message may take: by its own policy, or else by its queue.
--   policy     the message's policy; null passes
--   otherwise  the queue's timeout
--   returns  the length; null: no limit
-- vtq.send checks a policy; a plain INSERT does not. What cannot be read counts as absent: one such message must
-- not stop the readers of all the others.
CREATE OR REPLACE FUNCTION vtq._own_timeout(policy jsonb, otherwise interval)
RETURNS interval
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF jsonb_typeof(policy) <> 'object' OR NOT policy ? 'timeout' THEN
        RETURN otherwise;
    END IF;
    RETURN vtq._seconds('timeout', policy -> 'timeout', interval '1 ms', interval '365 days');
EXCEPTION WHEN data_exception THEN
    RETURN otherwise;
END;
$$;

COMMENT ON FUNCTION vtq._own_timeout(jsonb, interval)
    IS 'Internal: how long a run of a message may take, by its own policy or else by its queue.';

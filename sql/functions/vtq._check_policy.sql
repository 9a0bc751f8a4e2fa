-- vtq._check_policy: checks a message's own policy.
--   below    the backoff of the queue, which the message's own is laid over
--   policy   {"backoff": {...}, "timeout": length or null}, any part of it; null passes
--   raises   22023 naming the key, the value and the rule
CREATE OR REPLACE FUNCTION vtq._check_policy(below jsonb, policy jsonb)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    unknown text;
BEGIN
    IF policy IS NULL THEN
        RETURN;
    END IF;
    IF jsonb_typeof(policy) <> 'object' THEN
        RAISE EXCEPTION 'policy % is not allowed: give an object with "backoff", "timeout" or both',
            left(policy::text, 80) USING ERRCODE = '22023';
    END IF;
    SELECT k INTO unknown FROM jsonb_object_keys(policy) AS k WHERE k NOT IN ('backoff', 'timeout') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'policy key "%" is not known: a message''s policy has "backoff" and "timeout"', unknown
            USING ERRCODE = '22023';
    END IF;
    PERFORM vtq._check_backoff(below, policy -> 'backoff');
    PERFORM vtq._seconds('timeout', policy -> 'timeout', interval '1 ms', interval '365 days');
END;
$$;

COMMENT ON FUNCTION vtq._check_policy(jsonb, jsonb) IS 'Internal: checks a message''s own policy.';

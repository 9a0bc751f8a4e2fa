-- vtq._check_deadlines: refuses a deadline for retries that contradicts what else is said of the message.
--   queue         queue name
--   due           when the message is due; vtq._check_keys has seen that retry_until is later
--   expires_at .. policy   as given to vtq.send
--   raises   22023 naming both settings and their values
CREATE OR REPLACE FUNCTION vtq._check_deadlines(
    queue text,
    due timestamptz,
    expires_at timestamptz,
    retry_until timestamptz,
    max_attempts integer,
    policy jsonb
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    backoff jsonb := vtq._own_backoff((SELECT q.backoff FROM vtq._queue AS q WHERE q.queue = _check_deadlines.queue), policy);
    least_wait interval;
BEGIN
    IF retry_until IS NULL THEN
        RETURN;
    END IF;
    IF max_attempts = 1 THEN
        RAISE EXCEPTION 'retry_until % and max_attempts 1 exclude each other: what runs once is never run again', retry_until
            USING ERRCODE = '22023';
    END IF;
    IF retry_until > expires_at THEN
        RAISE EXCEPTION 'retry_until % is after expires_at %: no run starts after that, so it would never count',
            retry_until, expires_at USING ERRCODE = '22023';
    END IF;
    least_wait := vtq.backoff(backoff, 1, 0);
    IF due + least_wait >= retry_until AND backoff ->> 'on_deadline' IS DISTINCT FROM 'clamp' THEN
        RAISE EXCEPTION 'retry_until % leaves no time for a retry: the message is due at %, and its backoff waits at least % after the first failure',
            retry_until, due, least_wait
            USING ERRCODE = '22023', HINT = 'Set a later retry_until, a shorter backoff, or its "on_deadline" to "clamp".';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_deadlines(text, timestamptz, timestamptz, timestamptz, integer, jsonb)
    IS 'Internal: refuses a deadline for retries that contradicts what else is said of the message.';

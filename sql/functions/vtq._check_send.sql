-- vtq._check_send: checks what a send says about its messages, and finds their place in the line.
--   queue .. expires_at   as given to vtq.send
--   returns  enqueued_at: now · ready_at: when they are due · level: their priority
--   raises   VT001, 22023
CREATE OR REPLACE FUNCTION vtq._check_send(
    queue text,
    delay interval,
    visible_at timestamptz,
    priority integer,
    max_attempts integer,
    policy jsonb,
    expires_at timestamptz,
    OUT enqueued_at timestamptz,
    OUT ready_at timestamptz,
    OUT level smallint
)
RETURNS record
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    levels smallint[];
    backoff jsonb;
BEGIN
    SELECT q.priorities, q.backoff INTO levels, backoff FROM vtq._queue AS q WHERE q.queue = _check_send.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;

    enqueued_at := clock_timestamp();
    ready_at := enqueued_at;
    IF delay IS NOT NULL THEN
        IF visible_at IS NOT NULL THEN
            RAISE EXCEPTION 'delay % and visible_at % exclude each other: give a length or an instant', delay, visible_at
                USING ERRCODE = '22023';
        END IF;
        ready_at := enqueued_at + vtq._check_length('delay', delay, interval '0', interval '36500 days');
    ELSIF visible_at IS NOT NULL THEN
        PERFORM vtq._check_instant('visible_at', visible_at);
        -- An instant that is past means now: it does not let a message in at the front of the line.
        ready_at := greatest(enqueued_at, visible_at);
    END IF;

    level := levels[array_upper(levels, 1)];
    IF priority IS NOT NULL THEN
        IF priority <> ALL (levels) THEN
            RAISE EXCEPTION 'priority % is not a level of queue "%", which has %', priority, queue, levels
                USING ERRCODE = '22023';
        END IF;
        level := priority;
    ELSIF 0 = ANY (levels) THEN
        level := 0;
    END IF;

    IF max_attempts NOT BETWEEN 1 AND 32767 THEN
        RAISE EXCEPTION 'max_attempts % is not allowed: it must be from 1 to 32767, the first run included', max_attempts
            USING ERRCODE = '22023';
    END IF;
    IF policy IS NOT NULL THEN
        PERFORM vtq._check_policy(backoff, policy);
    END IF;
    IF expires_at IS NOT NULL THEN
        PERFORM vtq._check_instant('expires_at', expires_at);
        IF expires_at <= ready_at THEN
            RAISE EXCEPTION 'expires_at % is not after %, when the message is due: it could never run', expires_at, ready_at
                USING ERRCODE = '22023';
        END IF;
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_send(text, interval, timestamptz, integer, integer, jsonb, timestamptz)
    IS 'Internal: checks what a send says about its messages, and finds their place in the line.';

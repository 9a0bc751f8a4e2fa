-- vtq.create_queue: creates a queue, or repairs one that lacks a table.
--   queue    queue name: 1 to 47 bytes, ^[a-z0-9][a-z0-9_-]*$, not ending in _dlq, _archive, _attempts
--   options  see vtq._default_options; what is left out is the default's
--   returns  true when the queue was created, false when it was there
--   writes   vtq._queue and the four tables of the queue
--   raises   22023; VT002 when the queue exists and an option that is given differs from the one it has
-- Fifty sessions may call it at once. Of a queue that is whole it takes no lock but that of reading.
CREATE OR REPLACE FUNCTION vtq.create_queue(queue text, options jsonb DEFAULT '{}')
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
#variable_conflict use_variable
DECLARE
    is_new boolean := false;
    different text;
BEGIN
    PERFORM vtq._check_queue(queue);
    PERFORM vtq._check_options(options);
    IF NOT vtq._is_whole(queue) THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('vtq.queue.' || queue, 0));
        is_new := NOT EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = create_queue.queue);
        IF is_new THEN
            PERFORM vtq._apply_options(queue, options);
        END IF;
        PERFORM vtq._create_missing(queue);
        IF is_new THEN
            -- The announcement of a worker that sleeps went with the queue of this name that was here before.
            PERFORM pg_notify('vtq_' || queue, '');
        END IF;
    END IF;
    IF NOT is_new THEN
        -- An option that is silently not applied is the trap; the same call repeated is none.
        SELECT format('%s is %s, asked for %s', o.key, vtq.queue_options(queue) -> o.key, o.value)
        INTO different
        FROM jsonb_each(options) AS o
        WHERE CASE
            -- 90 and "90 s" are the same length.
            WHEN o.key ~ '(timeout|retention|aging)$' THEN
                vtq._seconds(o.key, o.value, '0', '36500 days')
                    IS DISTINCT FROM vtq._seconds(o.key, vtq.queue_options(queue) -> o.key, '0', '36500 days')
            ELSE
                vtq._check_options(jsonb_build_object(o.key, o.value)) -> o.key
                    IS DISTINCT FROM vtq.queue_options(queue) -> o.key
        END
        LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'queue "%" exists with other options: %', queue, different
                USING ERRCODE = 'VT002', HINT = format('Change it: SELECT vtq.set_queue(%L, %L);', queue, options);
        END IF;
    END IF;
    RETURN is_new;
END;
$$;

COMMENT ON FUNCTION vtq.create_queue(text, jsonb)
    IS 'Creates a queue; true when it is new. vtq.create_queue(''orders'', ''{"max_attempts": 8}''). Repairs missing tables.';

-- vtq._check_dlq: refuses a queue that does not exist or has lost its table of dead letters.
--   queue    queue name
--   raises   VT001, 22023, VT004
CREATE OR REPLACE FUNCTION vtq._check_dlq(queue text)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = _check_dlq.queue) THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    IF to_regclass(format('vtq.%I', queue || '_dlq')) IS NULL THEN
        RAISE EXCEPTION 'queue "%" has no table %', queue, format('vtq.%I', queue || '_dlq')
            USING ERRCODE = 'VT004', HINT = format('Build it again: SELECT vtq.create_queue(%L);', queue);
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_dlq(text) IS 'Internal: refuses a queue that has lost its table of dead letters.';

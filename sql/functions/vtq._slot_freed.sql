-- vtq._slot_freed: tells the workers that sleep on a queue that one message less is in flight, where that is limited.
--   queue    queue name
--   writes   nothing; see vtq._notify
-- A queue's own ack does the same with what it has read of the queue already.
CREATE OR REPLACE FUNCTION vtq._slot_freed(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    IF (SELECT q.max_in_flight FROM vtq._queue AS q WHERE q.queue = _slot_freed.queue) IS NOT NULL THEN
        PERFORM vtq._notify(queue);
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._slot_freed(text)
    IS 'Internal: tells the workers that sleep on a limited queue that one message less is in flight.';

-- vtq.drop_queue: removes a queue with everything in it: live messages, dead letters, archive, attempts.
--   queue    queue name
--   returns  true when it was there, false when not
--   raises   22023
CREATE OR REPLACE FUNCTION vtq.drop_queue(queue text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
SET client_min_messages = warning
AS $$
BEGIN
    PERFORM vtq._check_queue(queue);
    PERFORM pg_advisory_xact_lock(hashtextextended('vtq.queue.' || queue, 0));
    DELETE FROM vtq._queue AS q WHERE q.queue = drop_queue.queue;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM vtq._rate AS r WHERE r.queue = drop_queue.queue;
    DELETE FROM vtq._sleeper AS s WHERE s.queue = drop_queue.queue;
    DELETE FROM vtq._taken AS t WHERE t.queue = drop_queue.queue;
    EXECUTE format(
        'DROP TABLE IF EXISTS vtq.%I, vtq.%I, vtq.%I, vtq.%I',
        queue, queue || '_dlq', queue || '_archive', queue || '_attempts'
    );
    EXECUTE (
        SELECT string_agg(format('DROP FUNCTION IF EXISTS %s;', own), ' ') FROM vtq._own_functions(queue) AS own
    );
    RETURN true;
END;
$$;

COMMENT ON FUNCTION vtq.drop_queue(text) IS 'Removes a queue with everything in it; false when there is none of that name.';

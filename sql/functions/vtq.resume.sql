-- vtq.resume: ends the pause of a queue.
--   queue    queue name
--   returns  true when it was paused, false when it was running
--   writes   vtq._queue; wakes sleeping workers
--   raises   VT001
CREATE OR REPLACE FUNCTION vtq.resume(queue text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    was_paused boolean;
BEGIN
    SELECT coalesce(q.paused_until > clock_timestamp(), false) INTO was_paused
    FROM vtq._queue AS q WHERE q.queue = resume.queue FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    UPDATE vtq._queue AS q
    SET paused_at = NULL, paused_until = NULL, pause_reason = NULL
    WHERE q.queue = resume.queue;
    PERFORM vtq._notify(queue);
    RETURN was_paused;
END;
$$;

COMMENT ON FUNCTION vtq.resume(text) IS 'Ends the pause of a queue.';

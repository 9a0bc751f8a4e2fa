-- vtq.pause: makes reads of a queue return nothing, in all workers, until it is resumed.
--   queue    queue name
--   reason   shown wherever the queue is
--   until    reads begin again by themselves at this instant; default: never
--   returns  true when the queue was running, false when it was paused (the reason and the instant are replaced)
--   writes   vtq._queue. Messages that are in flight are settled as ever
--   raises   VT001; 22023 for an instant that is past
CREATE OR REPLACE FUNCTION vtq.pause(
    queue text,
    reason text DEFAULT NULL,
    until timestamptz DEFAULT 'infinity'
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    started timestamptz := clock_timestamp();
    was_running boolean;
BEGIN
    IF until IS NULL OR until <= started THEN
        RAISE EXCEPTION 'until % is not allowed: it must lie in the future', coalesce(until::text, 'null')
            USING ERRCODE = '22023';
    END IF;
    SELECT q.paused_until IS NULL OR q.paused_until <= started INTO was_running
    FROM vtq._queue AS q WHERE q.queue = pause.queue FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    UPDATE vtq._queue AS q
    SET paused_at = CASE WHEN was_running THEN started ELSE q.paused_at END,
        paused_until = pause.until,
        pause_reason = pause.reason
    WHERE q.queue = pause.queue;
    RETURN was_running;
END;
$$;

COMMENT ON FUNCTION vtq.pause(text, text, timestamptz)
    IS 'Makes reads of a queue return nothing until vtq.resume, or until an instant.';

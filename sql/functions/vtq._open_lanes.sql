-- vtq._open_lanes: notes that a queue has messages that wait their turn, so that its readers look for them.
--   queue    queue name
--   writes   vtq._queue, once in the life of the queue
-- A row that somebody else is writing is left: that is another first sender, or its owner, and a sweep notes it later.
CREATE OR REPLACE FUNCTION vtq._open_lanes(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    IF (SELECT q.has_lanes FROM vtq._queue AS q WHERE q.queue = _open_lanes.queue) THEN
        RETURN;
    END IF;
    UPDATE vtq._queue AS q
    SET has_lanes = true
    WHERE q.ctid = (
        SELECT l.ctid FROM vtq._queue AS l WHERE l.queue = _open_lanes.queue AND NOT l.has_lanes FOR UPDATE SKIP LOCKED
    );
END;
$$;

COMMENT ON FUNCTION vtq._open_lanes(text) IS 'Internal: notes that a queue has messages that wait their turn.';

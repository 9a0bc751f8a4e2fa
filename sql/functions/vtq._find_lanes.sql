-- vtq._find_lanes: notes that a queue has lanes where their first sender could not.
--   queue    queue name
--   writes   vtq._queue
--   index    _<queue>_arrivals
CREATE OR REPLACE FUNCTION vtq._find_lanes(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    is_any boolean;
BEGIN
    EXECUTE format('SELECT EXISTS (SELECT FROM vtq.%I AS m WHERE m.arrives_at IS NOT NULL)', queue) INTO is_any;
    IF is_any THEN
        PERFORM vtq._open_lanes(queue);
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._find_lanes(text) IS 'Internal: notes that a queue has lanes where their first sender could not.';

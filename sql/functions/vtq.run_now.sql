-- vtq.run_now: makes a delayed or retrying message due now: the same message, with its attempts as they are.
--   queue    queue name
--   msg_id   the message
--   returns  true when it was delayed or retrying; false when it was not, or is not there
--   writes   vtq.<queue>; wakes sleeping workers
--   index    primary key
--   raises   VT001
CREATE OR REPLACE FUNCTION vtq.run_now(queue text, msg_id bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    changed_ct bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = run_now.queue) THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    EXECUTE format(
        'UPDATE vtq.%I AS m SET ready_at = $2, vt = $2 WHERE m.msg_id = $1 AND m.ready_at > $2'
        ' AND m.ready_at < ''infinity''', queue
    ) USING msg_id, clock_timestamp();
    GET DIAGNOSTICS changed_ct = ROW_COUNT;
    IF changed_ct > 0 THEN
        PERFORM vtq._notify(queue);
    END IF;
    RETURN changed_ct > 0;
END;
$$;

COMMENT ON FUNCTION vtq.run_now(text, bigint) IS 'Makes a delayed or retrying message due now.';

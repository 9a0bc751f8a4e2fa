-- vtq.schedule_run: sends a schedule's message now, besides its plan, whether it is paused or not.
--   name     name of the schedule
--   returns  the msg_id
--   writes   vtq.<queue>, vtq._schedule
--   raises   VT006; VT001 when its queue does not exist; 22023 when the queue would not take the message
CREATE OR REPLACE FUNCTION vtq.schedule_run(name text)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    schedule vtq._schedule;
    id bigint;
BEGIN
    SELECT s.* INTO schedule FROM vtq._schedule AS s WHERE s.name = schedule_run.name FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM vtq._no_schedule(name);
    END IF;
    id := vtq._send_scheduled(schedule, NULL);
    UPDATE vtq._schedule AS s
    SET last_msg_id = id, last_sent_at = clock_timestamp(), sent_ct = s.sent_ct + 1
    WHERE s.name = schedule_run.name;
    RETURN id;
END;
$$;

COMMENT ON FUNCTION vtq.schedule_run(text) IS 'Sends a schedule''s message now and returns its msg_id. The plan goes on as if nothing had been.';

-- vtq.send: puts one message into a queue. It is there when the caller's transaction commits.
--   queue         queue name
--   message       any JSON but SQL null: an object, array, string, number, true, false, null
--   headers       null or an object; keys that begin with vtq_ are reserved
--   delay         due this long from now, 0 to 36500 days; counted from the call, not from BEGIN
--   visible_at    due at this instant instead; one that is past means now
--   priority      a level of the queue; default 0, or the last level where the queue has no 0
--   max_attempts  runs allowed, the first included; default the queue's
--   policy        {"backoff": {...}, "timeout": ...} of this message; default the queue's
--   expires_at    not started after this instant; must come after the message is due
--   returns  the msg_id
--   writes   vtq.<queue>
--   raises   VT001, VT004, 22023
-- The work is done by the queue's own send; see vtq._create_send.
CREATE OR REPLACE FUNCTION vtq.send(
    queue text,
    message jsonb,
    headers jsonb DEFAULT NULL,
    delay interval DEFAULT NULL,
    visible_at timestamptz DEFAULT NULL,
    priority integer DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    policy jsonb DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    own text := vtq._own(queue, 'send');
    id bigint;
BEGIN
    IF to_regproc(own) IS NULL THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    EXECUTE 'SELECT ' || own || '($1, $2, $3, $4, $5, $6, $7, $8)' INTO id
    USING message, headers, delay, visible_at, priority, max_attempts, policy, expires_at;
    RETURN id;
END;
$$;

COMMENT ON FUNCTION vtq.send(text, jsonb, jsonb, interval, timestamptz, integer, integer, jsonb, timestamptz)
    IS 'Puts one message into a queue and returns its msg_id: vtq.send(''orders'', ''{"id": 1}'', delay => ''5 min'').';

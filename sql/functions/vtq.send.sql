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
--   retry_until   not run again after this instant
--   unique_key    at most one live message has this key
--   unique_until  done (default): the key is free when the message is settled · started: when a handler first starts
--   unique_for    the key stays taken this long after success as well
--   on_conflict   when the key is taken: skip (default): nothing is sent, the msg_id that has it is returned · replace: the
--                 waiting message takes the new payload and headers · error: VT003
--   max_wait      with replace and a delay: how far later sends may put the message off, counted from its first send
--   group_key     messages of one group run one after the other, in order
--   exclusive_key  at most so many messages of one key run at once, in no order; see the queue's exclusive_limit
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
    expires_at timestamptz DEFAULT NULL,
    retry_until timestamptz DEFAULT NULL,
    unique_key text DEFAULT NULL,
    unique_until text DEFAULT NULL,
    unique_for interval DEFAULT NULL,
    on_conflict text DEFAULT NULL,
    max_wait interval DEFAULT NULL,
    group_key text DEFAULT NULL,
    exclusive_key text DEFAULT NULL
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    own text := vtq._own(queue, 'send');
    id bigint;
BEGIN
    IF num_nonnulls(
        retry_until, unique_key, unique_until, unique_for, on_conflict, max_wait, group_key, exclusive_key
    ) > 0 THEN
        SELECT s.msg_id INTO id
        FROM vtq._send_keyed(
            queue, ARRAY[message], ARRAY[headers], delay, visible_at, priority, max_attempts, policy, expires_at, retry_until,
            CASE WHEN unique_key IS NOT NULL THEN ARRAY[unique_key] END, unique_until, unique_for, on_conflict, max_wait,
            ARRAY[group_key], ARRAY[exclusive_key]
        ) AS s;
        RETURN id;
    END IF;
    IF to_regproc(own) IS NULL THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    EXECUTE 'SELECT ' || own || '($1, $2, $3, $4, $5, $6, $7, $8)' INTO id
    USING message, headers, delay, visible_at, priority, max_attempts, policy, expires_at;
    RETURN id;
END;
$$;

COMMENT ON FUNCTION vtq.send(
    text, jsonb, jsonb, interval, timestamptz, integer, integer, jsonb, timestamptz, timestamptz, text, text, interval, text,
    interval, text, text
)
    IS 'Puts one message into a queue and returns its msg_id: vtq.send(''orders'', ''{"id": 1}'', delay => ''5 min'').';

-- vtq.send_batch: puts many messages into a queue in one statement: all of them or none.
--   queue         queue name
--   messages      as in vtq.send; any number, none included
--   headers       null, or one element (null or an object) for each message
--   delay .. retry_until   as in vtq.send, for all of the messages
--   unique_keys, group_keys, exclusive_keys   null, or one element for each message
--   unique_until .. max_wait   as in vtq.send, for all of the messages
--   returns  the msg_ids in the order of the messages
--   writes   vtq.<queue>
--   raises   VT001, VT004, 22023 naming the message by its place, 1 for the first
-- The work is done by the queue's own send_batch; see vtq._create_send_batch.
CREATE OR REPLACE FUNCTION vtq.send_batch(
    queue text,
    messages jsonb[],
    headers jsonb[] DEFAULT NULL,
    delay interval DEFAULT NULL,
    visible_at timestamptz DEFAULT NULL,
    priority integer DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    policy jsonb DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL,
    retry_until timestamptz DEFAULT NULL,
    unique_keys text[] DEFAULT NULL,
    unique_until text DEFAULT NULL,
    unique_for interval DEFAULT NULL,
    on_conflict text DEFAULT NULL,
    max_wait interval DEFAULT NULL,
    group_keys text[] DEFAULT NULL,
    exclusive_keys text[] DEFAULT NULL
)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    own text := vtq._own(queue, 'send_batch');
BEGIN
    IF num_nonnulls(
        retry_until, unique_keys, unique_until, unique_for, on_conflict, max_wait, group_keys, exclusive_keys
    ) > 0 THEN
        RETURN QUERY
        SELECT s.msg_id
        FROM vtq._send_keyed(
            queue, messages, headers, delay, visible_at, priority, max_attempts, policy, expires_at, retry_until, unique_keys,
            unique_until, unique_for, on_conflict, max_wait, group_keys, exclusive_keys
        ) AS s
        ORDER BY s.place;
        RETURN;
    END IF;
    IF to_regproc(own) IS NULL THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    RETURN QUERY EXECUTE 'SELECT * FROM ' || own || '($1, $2, $3, $4, $5, $6, $7, $8)'
    USING messages, headers, delay, visible_at, priority, max_attempts, policy, expires_at;
END;
$$;

COMMENT ON FUNCTION vtq.send_batch(
    text, jsonb[], jsonb[], interval, timestamptz, integer, integer, jsonb, timestamptz, timestamptz, text[], text, interval,
    text, interval, text[], text[]
)
    IS 'Puts many messages into a queue, all or none, and returns their msg_ids in input order.';

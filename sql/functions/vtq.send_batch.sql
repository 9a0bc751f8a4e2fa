-- vtq.send_batch: puts many messages into a queue in one statement: all of them or none.
--   queue         queue name
--   messages      as in vtq.send; any number, none included
--   headers       null, or one element (null or an object) for each message
--   delay .. expires_at   as in vtq.send, for all of the messages
--   returns  the msg_ids in the order of the messages
--   writes   vtq.<queue>
--   raises   VT001, 22023 naming the message by its place, 1 for the first
CREATE OR REPLACE FUNCTION vtq.send_batch(
    queue text,
    messages jsonb[],
    headers jsonb[] DEFAULT NULL,
    delay interval DEFAULT NULL,
    visible_at timestamptz DEFAULT NULL,
    priority integer DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    policy jsonb DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL
)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    place record;
    missing bigint;
BEGIN
    place := vtq._check_send(queue, delay, visible_at, priority, max_attempts, policy, expires_at);
    IF messages IS NULL THEN
        RAISE EXCEPTION 'messages is null: give an array' USING ERRCODE = '22023';
    END IF;
    IF array_ndims(messages) > 1 THEN
        RAISE EXCEPTION 'messages has % dimensions, but must be a plain array', array_ndims(messages)
            USING ERRCODE = '22023';
    END IF;
    -- An array need not begin at 1.
    missing := array_position(messages, NULL) - array_lower(messages, 1) + 1;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'message % is null: send the JSON ''null'' if that is what you mean', missing
            USING ERRCODE = '22023';
    END IF;
    IF headers IS NOT NULL THEN
        IF cardinality(headers) <> cardinality(messages) THEN
            RAISE EXCEPTION 'headers has % elements, but must have one for each of the % messages',
                cardinality(headers), cardinality(messages) USING ERRCODE = '22023';
        END IF;
        PERFORM vtq._check_headers(h.headers, h.place)
        FROM unnest(headers) WITH ORDINALITY AS h (headers, place)
        WHERE h.headers IS NOT NULL;
    END IF;
    -- msg_ids are drawn in the order of the sorted input, so sorting them gives that order back.
    RETURN QUERY EXECUTE format($sql$
        WITH sent AS (
            INSERT INTO vtq.%1$I (
                enqueued_at, ready_at, vt, priority, max_attempts, policy, expires_at, headers, message
            )
            SELECT $8, $1, $1, $2, $3, $4, $5, b.headers, b.message
            FROM unnest($6, $7) WITH ORDINALITY AS b (headers, message, place)
            ORDER BY b.place
            RETURNING msg_id
        )
        SELECT s.msg_id FROM sent AS s ORDER BY s.msg_id
    $sql$, queue)
    USING place.ready_at, place.level, max_attempts, policy, expires_at, headers, messages,
        place.enqueued_at;
END;
$$;

COMMENT ON FUNCTION vtq.send_batch(text, jsonb[], jsonb[], interval, timestamptz, integer, integer, jsonb, timestamptz)
    IS 'Puts many messages into a queue, all or none, and returns their msg_ids in input order.';

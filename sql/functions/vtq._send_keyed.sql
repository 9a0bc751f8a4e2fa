-- vtq._send_keyed: sends messages that have a key, or a deadline for retries.
--   queue .. exclusive_keys   as given to vtq.send_batch
--   returns  one row for each message: its place, 1 for the first · the msg_id that has the key now · outcome: sent, or
--            skipped, replaced where the key was taken
--   writes   vtq.<queue>
--   raises   VT001, VT003, 22023
-- The common message does not come by here. Those with a unique key go one by one, each with what becomes of it.
CREATE OR REPLACE FUNCTION vtq._send_keyed(
    queue text,
    messages jsonb[],
    headers jsonb[],
    delay interval,
    visible_at timestamptz,
    priority integer,
    max_attempts integer,
    policy jsonb,
    expires_at timestamptz,
    retry_until timestamptz,
    unique_keys text[],
    unique_until text,
    unique_for interval,
    on_conflict text,
    max_wait interval,
    group_keys text[],
    exclusive_keys text[]
)
RETURNS TABLE (place bigint, msg_id bigint, outcome text)
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    due record;
    item record;
BEGIN
    due := vtq._check_send(queue, delay, visible_at, priority, max_attempts, policy, expires_at);
    PERFORM vtq._check_batch(messages, headers);
    PERFORM vtq._check_keys(
        cardinality(messages), retry_until, due.ready_at, unique_keys, unique_until, unique_for, on_conflict, max_wait,
        delay, group_keys, exclusive_keys
    );
    PERFORM vtq._check_deadlines(queue, due.ready_at, expires_at, retry_until, max_attempts, policy);
    IF unique_keys IS NULL THEN
        -- msg_ids are drawn in the order of the sorted input, so sorting them gives that order back.
        RETURN QUERY EXECUTE format($sql$
            WITH sent AS (
                INSERT INTO vtq.%1$I AS m (
                    enqueued_at, ready_at, vt, priority, max_attempts, policy, expires_at, headers, message, retry_until,
                    group_key, exclusive_key, lane, arrives_at
                )
                SELECT $1, b.ready_at, b.ready_at, $3, $4, $5, $6, b.headers, b.message, $7, b.group_key, b.exclusive_key,
                    b.lane, CASE WHEN b.lane IS NOT NULL THEN $2 END
                FROM (
                    SELECT u.*, l.lane, CASE WHEN l.lane IS NULL THEN $2 ELSE 'infinity' END AS ready_at
                    FROM unnest($8, $9, $10, $11) WITH ORDINALITY AS u (message, headers, group_key, exclusive_key, place)
                    CROSS JOIN LATERAL (SELECT vtq._lane(u.group_key, u.exclusive_key) AS lane) AS l
                    ORDER BY u.place
                ) AS b
                RETURNING m.msg_id
            )
            SELECT row_number() OVER (ORDER BY s.msg_id), s.msg_id, 'sent' FROM sent AS s
        $sql$, queue)
        USING due.enqueued_at, due.ready_at, due.level, max_attempts, policy, expires_at, retry_until, messages, headers,
            group_keys, exclusive_keys;
        RETURN;
    END IF;
    FOR item IN
        SELECT u.*, vtq._lane(u.group_key, u.exclusive_key) AS lane
        FROM unnest(messages, headers, unique_keys, group_keys, exclusive_keys) WITH ORDINALITY
            AS u (message, headers, unique_key, group_key, exclusive_key, place)
        ORDER BY u.place
    LOOP
        place := item.place;
        IF item.unique_key IS NOT NULL THEN
            SELECT t.msg_id, t.outcome INTO msg_id, outcome
            FROM vtq._take_unique(
                queue, item.unique_key, coalesce(on_conflict, 'skip'), item.message, item.headers, due.ready_at, max_wait
            ) AS t;
            IF msg_id IS NOT NULL THEN
                RETURN NEXT;
                CONTINUE;
            END IF;
        END IF;
        EXECUTE format($sql$
            INSERT INTO vtq.%1$I AS m (
                enqueued_at, ready_at, vt, priority, max_attempts, policy, expires_at, headers, message, retry_until,
                unique_key, unique_until, unique_for, debounce_until, group_key, exclusive_key, lane, arrives_at
            )
            VALUES ($1, $2, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
            ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING
            RETURNING m.msg_id
        $sql$, queue)
        INTO msg_id
        USING due.enqueued_at, CASE WHEN item.lane IS NULL THEN due.ready_at ELSE 'infinity' END, due.level, max_attempts,
            policy, expires_at, item.headers, item.message, retry_until, item.unique_key,
            CASE WHEN item.unique_key IS NOT NULL THEN coalesce(unique_until, 'done') END, unique_for,
            due.enqueued_at + max_wait, item.group_key, item.exclusive_key, item.lane,
            CASE WHEN item.lane IS NOT NULL THEN due.ready_at END;
        outcome := 'sent';
        IF msg_id IS NULL THEN
            -- Somebody took the key between the look and the insert, and has committed by now: look again.
            SELECT t.msg_id, t.outcome INTO msg_id, outcome
            FROM vtq._take_unique(
                queue, item.unique_key, coalesce(on_conflict, 'skip'), item.message, item.headers, due.ready_at, max_wait
            ) AS t;
        END IF;
        RETURN NEXT;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION vtq._send_keyed(
    text, jsonb[], jsonb[], interval, timestamptz, integer, integer, jsonb, timestamptz, timestamptz, text[], text, interval,
    text, interval, text[], text[]
) IS 'Internal: sends messages that have a key, or a deadline for retries.';

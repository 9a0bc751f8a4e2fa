-- vtq._send_keyed: sends messages that have a key, or a deadline for retries.
--   queue .. exclusive_keys   as given to vtq.send_batch
--   returns  one row for each message: its place, 1 for the first · the msg_id that has the key now · outcome: sent, or
--            skipped, replaced where the key was taken
--   writes   vtq.<queue>, vtq._queue
--   raises   VT001, VT003, 22023
-- The common message does not come by here; so these go one by one, each with what it needs.
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
    lane text;
BEGIN
    due := vtq._check_send(queue, delay, visible_at, priority, max_attempts, policy, expires_at);
    PERFORM vtq._check_batch(messages, headers);
    PERFORM vtq._check_keys(
        cardinality(messages), retry_until, due.ready_at, unique_keys, unique_until, unique_for, on_conflict, max_wait,
        delay, group_keys, exclusive_keys
    );
    PERFORM vtq._check_deadlines(queue, due.ready_at, expires_at, retry_until, max_attempts, policy);
    IF num_nonnulls(group_keys, exclusive_keys) > 0 THEN
        PERFORM vtq._open_lanes(queue);
    END IF;
    FOR i IN 1..cardinality(messages) LOOP
        place := i;
        lane := vtq._lane(group_keys[i], exclusive_keys[i]);
        IF unique_keys[i] IS NOT NULL THEN
            SELECT t.msg_id, t.outcome INTO msg_id, outcome
            FROM vtq._take_unique(
                queue, unique_keys[i], coalesce(on_conflict, 'skip'), messages[i], headers[i], due.ready_at, max_wait
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
        USING due.enqueued_at, CASE WHEN lane IS NULL THEN due.ready_at ELSE 'infinity' END, due.level, max_attempts, policy,
            expires_at, headers[i], messages[i], retry_until, unique_keys[i],
            CASE WHEN unique_keys[i] IS NOT NULL THEN coalesce(unique_until, 'done') END, unique_for,
            due.enqueued_at + max_wait, group_keys[i], exclusive_keys[i], lane,
            CASE WHEN lane IS NOT NULL THEN due.ready_at END;
        outcome := 'sent';
        IF msg_id IS NULL THEN
            -- Somebody took the key between the look and the insert, and has committed by now: look again.
            SELECT t.msg_id, t.outcome INTO msg_id, outcome
            FROM vtq._take_unique(
                queue, unique_keys[i], coalesce(on_conflict, 'skip'), messages[i], headers[i], due.ready_at, max_wait
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

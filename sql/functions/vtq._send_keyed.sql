-- vtq._send_keyed: sends messages that have a key, or a deadline for retries.
--   queue .. exclusive_keys   as given to vtq.send_batch
--   returns  one row for each message, in order of place, 1 for the first: the msg_id that has the key now · outcome:
--            sent · superseded: sent, and a waiting retry with this key is in the archive · where the key was taken,
--            skipped or replaced
--   writes   vtq.<queue>, vtq.<queue>_archive, vtq._queue
--   index    _<queue>_unique, _taken_pk
--   raises   VT001, VT007, 22023
-- One statement sends whatever it can; only messages whose key is taken are looked at one by one.
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
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    due record;
    message record;
    sent record;
    has_keys boolean := array_remove(unique_keys, NULL) <> '{}';
    how text := coalesce(on_conflict, 'skip');
    -- A debounce promises that the latest payload wins: a message that runs already must not hold the key.
    until text := coalesce(unique_until, CASE WHEN on_conflict = 'replace' AND delay IS NOT NULL THEN 'started' ELSE 'done' END);
    ids bigint[];
    keys text[];
    taken record;
BEGIN
    due := vtq._check_send(queue, delay, visible_at, priority, max_attempts, policy, expires_at);
    PERFORM vtq._check_batch(messages, headers);
    PERFORM vtq._check_keys(
        cardinality(messages), retry_until, due.ready_at, unique_keys, unique_until, unique_for, on_conflict, max_wait,
        delay, group_keys, exclusive_keys
    );
    PERFORM vtq._check_deadlines(queue, due.ready_at, expires_at, retry_until, max_attempts, policy);
    SELECT i.ids, i.keys INTO ids, keys FROM vtq._insert_keyed(
        queue, messages, headers, due.enqueued_at, due.ready_at, due.level, max_attempts, policy, expires_at, retry_until,
        CASE WHEN has_keys THEN unique_keys END, until, unique_for, max_wait, group_keys, exclusive_keys
    ) AS i;
    FOR message IN
        -- Of several with one key the first was sent. The ids of those without a key are drawn in order of place.
        SELECT a.place, a.message, a.headers, a.unique_key, a.group_key, a.exclusive_key, g.msg_id
        FROM (
            SELECT b.*, row_number() OVER (PARTITION BY b.unique_key ORDER BY b.place) AS nth
            FROM unnest(messages, headers, unique_keys, group_keys, exclusive_keys)
                WITH ORDINALITY AS b (message, headers, unique_key, group_key, exclusive_key, place)
        ) AS a
        LEFT JOIN (
            SELECT s.msg_id, s.unique_key, row_number() OVER (PARTITION BY s.unique_key ORDER BY s.msg_id) AS nth
            FROM unnest(ids, keys) AS s (msg_id, unique_key)
        ) AS g
            ON g.nth = a.nth AND coalesce(g.unique_key, '') = coalesce(a.unique_key, '')
        ORDER BY a.place
    LOOP
        place := message.place;
        msg_id := message.msg_id;
        outcome := 'sent';
        WHILE msg_id IS NULL LOOP
            taken := NULL;
            SELECT t.msg_id, t.outcome INTO taken
            FROM vtq._take_unique(queue, message.unique_key, how, message.message, message.headers, delay, max_wait) AS t;
            IF how = 'error' AND taken.outcome = 'skipped' THEN
                RAISE EXCEPTION '%unique_key "%" of queue "%" is taken by message %',
                    CASE WHEN cardinality(messages) > 1 THEN format('message %s: ', place) ELSE '' END,
                    message.unique_key, queue, taken.msg_id USING ERRCODE = 'VT007';
            END IF;
            outcome := coalesce(taken.outcome, 'sent');
            IF outcome IN ('skipped', 'replaced') THEN
                msg_id := taken.msg_id;
                EXIT;
            END IF;
            SELECT i.ids[1] INTO msg_id FROM vtq._insert_keyed(
                queue, ARRAY[message.message], ARRAY[message.headers], due.enqueued_at, due.ready_at, due.level,
                max_attempts, policy, expires_at, retry_until, ARRAY[message.unique_key], until, unique_for, max_wait,
                ARRAY[message.group_key], ARRAY[message.exclusive_key]
            ) AS i;
            -- Null: somebody took the key between the look and the insert, and has committed by now. Look again.
            IF taken.outcome = 'superseded' AND msg_id IS NOT NULL THEN
                PERFORM vtq._supersede(queue, taken.msg_id, msg_id);
            END IF;
        END LOOP;
        RETURN NEXT;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION vtq._send_keyed(
    text, jsonb[], jsonb[], interval, timestamptz, integer, integer, jsonb, timestamptz, timestamptz, text[], text, interval,
    text, interval, text[], text[]
) IS 'Internal: sends messages that have a key, or a deadline for retries.';

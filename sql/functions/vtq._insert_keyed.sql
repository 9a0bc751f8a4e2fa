-- vtq._insert_keyed: puts messages into a queue, but those whose unique key is taken.
--   queue .. exclusive_keys   as in vtq._send_keyed, checked; unique_keys null where no message has one
--   returns  ids, in the order of the messages · keys, the unique_key of each
--   writes   vtq.<queue>
--   index    _<queue>_unique, _taken_pk
-- Without jit = off the trigger's look at an empty table, which enable_seqscan = off makes dear, would be compiled: 0.3 s.
-- It waits for another sender of a key whose transaction is open: only its end tells whether the key is taken.
CREATE OR REPLACE FUNCTION vtq._insert_keyed(
    queue text,
    messages jsonb[],
    headers jsonb[],
    enqueued_at timestamptz,
    due timestamptz,
    level smallint,
    max_attempts integer,
    policy jsonb,
    expires_at timestamptz,
    retry_until timestamptz,
    unique_keys text[],
    unique_until text,
    unique_for interval,
    max_wait interval,
    group_keys text[],
    exclusive_keys text[],
    OUT ids bigint[],
    OUT keys text[]
)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    at timestamptz := clock_timestamp();
    late bigint[];
BEGIN
    -- msg_ids are drawn in the order of the sorted input, so sorting them gives that order back.
    EXECUTE format($sql$
        WITH sent AS (
            INSERT INTO vtq.%1$I AS m (
                enqueued_at, ready_at, vt, priority, max_attempts, policy, expires_at, headers, message, retry_until,
                unique_key, unique_until, unique_for, debounce_until, group_key, exclusive_key, lane, arrives_at
            )
            SELECT $1, l.ready_at, l.ready_at, $3, $4, $5, $6, b.headers, b.message, $7,
                b.unique_key, CASE WHEN b.unique_key IS NOT NULL THEN $8 END, CASE WHEN b.unique_key IS NOT NULL THEN $9 END,
                CASE WHEN b.unique_key IS NOT NULL THEN $1 + $10 END, b.group_key, b.exclusive_key, l.lane,
                CASE WHEN l.lane IS NOT NULL THEN $2 END
            FROM (
                SELECT u.*, row_number() OVER (PARTITION BY u.unique_key ORDER BY u.place) AS nth
                FROM unnest($11, $12, $13, $14, $15)
                    WITH ORDINALITY AS u (message, headers, unique_key, group_key, exclusive_key, place)
            ) AS b
            CROSS JOIN LATERAL (
                SELECT n.lane, CASE WHEN n.lane IS NULL THEN $2 ELSE 'infinity' END AS ready_at
                FROM (SELECT vtq._lane(b.group_key, b.exclusive_key) AS lane) AS n
            ) AS l
            %2$s
            ORDER BY b.place
            %3$s
            RETURNING m.msg_id, %4$s AS unique_key
        )
        SELECT array_agg(s.msg_id ORDER BY s.msg_id), array_agg(s.unique_key ORDER BY s.msg_id) FROM sent AS s
    $sql$,
        queue,
        -- What is known to be taken does not come as far as to draw a msg_id.
        CASE WHEN unique_keys IS NOT NULL THEN format($filter$
            WHERE b.unique_key IS NULL
                OR (
                    b.nth = 1
                    AND NOT EXISTS (
                        SELECT FROM vtq.%1$I AS h
                        WHERE h.unique_key = b.unique_key AND h.unique_key IS NOT NULL AND NOT h.is_key_free
                    )
                    AND NOT EXISTS (
                        SELECT FROM vtq._taken AS t
                        WHERE t.queue = $16 AND t.unique_key = b.unique_key AND t.until > $17
                    )
                )
        $filter$, queue) END,
        CASE WHEN unique_keys IS NOT NULL THEN 'ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND NOT is_key_free'
            ' DO NOTHING' END,
        CASE WHEN unique_keys IS NOT NULL THEN 'm.unique_key' ELSE 'NULL::text' END
    )
    INTO ids, keys
    USING enqueued_at, due, level, max_attempts, policy, expires_at, retry_until, unique_until, unique_for, max_wait,
        messages, headers, unique_keys, group_keys, exclusive_keys, queue, at;
    IF unique_keys IS NULL OR ids IS NULL THEN
        RETURN;
    END IF;
    -- The message that had the key may have succeeded while the statement ran, and have left the key taken.
    SELECT array_agg(s.msg_id) INTO late
    FROM unnest(ids, keys) AS s (msg_id, unique_key)
    JOIN vtq._taken AS t ON t.queue = _insert_keyed.queue AND t.unique_key = s.unique_key AND t.until > at;
    IF late IS NOT NULL THEN
        EXECUTE format('DELETE FROM vtq.%I AS m WHERE m.msg_id = ANY ($1)', queue) USING late;
        SELECT array_agg(s.msg_id ORDER BY s.msg_id), array_agg(s.unique_key ORDER BY s.msg_id) INTO ids, keys
        FROM unnest(ids, keys) AS s (msg_id, unique_key)
        WHERE s.msg_id <> ALL (late);
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._insert_keyed(
    text, jsonb[], jsonb[], timestamptz, timestamptz, smallint, integer, jsonb, timestamptz, timestamptz, text[], text,
    interval, interval, text[], text[]
) IS 'Internal: puts messages into a queue, but those whose unique key is taken.';

-- vtq._create_send_batch: builds a queue's own send_batch, which vtq.send_batch hands over to.
--   queue    queue name, checked
--   writes   the function vtq."_<queue>.send_batch"; its arguments and its answer are those of vtq.send_batch
-- See vtq._create_read for why a queue has functions of its own.
CREATE OR REPLACE FUNCTION vtq._create_send_batch(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($template$
        CREATE OR REPLACE FUNCTION vtq.%1$I(
            messages jsonb[],
            headers jsonb[],
            delay interval,
            visible_at timestamptz,
            priority integer,
            max_attempts integer,
            policy jsonb,
            expires_at timestamptz
        )
        RETURNS SETOF bigint
        LANGUAGE plpgsql
        SET search_path = pg_catalog
        SET plan_cache_mode = force_generic_plan
        AS $body$
        #variable_conflict use_variable
        DECLARE
            sent_at timestamptz := clock_timestamp();
            due timestamptz := sent_at;
            level smallint;
            place record;
        BEGIN
            IF num_nonnulls(delay, visible_at, priority, max_attempts, policy, expires_at) > 0 THEN
                place := vtq._check_send(%2$L, delay, visible_at, priority, max_attempts, policy, expires_at);
                sent_at := place.enqueued_at;
                due := place.ready_at;
                level := place.level;
            ELSE
                -- The common message: nothing to check, and the queue's usual level.
                SELECT CASE WHEN 0 = ANY (q.priorities) THEN 0 ELSE q.priorities[cardinality(q.priorities)] END INTO level
                FROM vtq._queue AS q
                WHERE q.queue = %2$L;
                IF NOT FOUND THEN
                    PERFORM vtq._no_queue(%2$L);
                END IF;
            END IF;
            PERFORM vtq._check_batch(messages, headers);
            -- A function in FROM hands its rows on as it makes them, and so does INSERT. Sorting them, and the msg_ids,
            -- by their places would change nothing and copy every message once more.
            RETURN QUERY
            INSERT INTO vtq.%2$I AS m (
                enqueued_at, ready_at, vt, priority, max_attempts, policy, expires_at, headers, message
            )
            SELECT sent_at, due, due, level, max_attempts, policy, expires_at, b.headers, b.message
            FROM unnest(headers, messages) AS b (headers, message)
            RETURNING m.msg_id;
        END;
        $body$
    $template$, '_' || queue || '.send_batch', queue);
END;
$$;

COMMENT ON FUNCTION vtq._create_send_batch(text) IS 'Internal: builds a queue''s own send_batch.';

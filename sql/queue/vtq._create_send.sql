-- vtq._create_send: builds a queue's own send, which vtq.send hands over to.
--   queue    queue name, checked
--   writes   the function vtq."_<queue>.send"; its arguments and its answer are those of vtq.send
-- See vtq._create_read for why a queue has functions of its own.
CREATE OR REPLACE FUNCTION vtq._create_send(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($template$
        CREATE OR REPLACE FUNCTION vtq.%1$I(
            message jsonb,
            headers jsonb,
            delay interval,
            visible_at timestamptz,
            priority integer,
            max_attempts integer,
            policy jsonb,
            expires_at timestamptz
        )
        RETURNS bigint
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
            id bigint;
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
            IF message IS NULL THEN
                RAISE EXCEPTION 'message is null: send the JSON ''null'' if that is what you mean' USING ERRCODE = '22023';
            END IF;
            IF headers IS NOT NULL THEN
                PERFORM vtq._check_headers(headers);
            END IF;
            INSERT INTO vtq.%2$I AS m (
                enqueued_at, ready_at, vt, priority, max_attempts, policy, expires_at, headers, message
            )
            VALUES (
                sent_at, due, due, level, max_attempts, policy, expires_at, headers, message
            )
            RETURNING m.msg_id INTO id;
            RETURN id;
        END;
        $body$
    $template$, '_' || queue || '.send', queue);
END;
$$;

COMMENT ON FUNCTION vtq._create_send(text) IS 'Internal: builds a queue''s own send.';

-- vtq._create_ack: builds a queue's own ack, which vtq.ack hands over to.
--   queue    queue name, checked
--   writes   the function vtq."_<queue>.ack"; its arguments and its answer are those of vtq.ack
-- See vtq._create_read for why a queue has functions of its own.
CREATE OR REPLACE FUNCTION vtq._create_ack(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($template$
        CREATE OR REPLACE FUNCTION vtq.%1$I(msg_ids bigint[], read_cts integer[], holder integer)
        RETURNS SETOF bigint
        LANGUAGE plpgsql
        SET search_path = pg_catalog
        -- Row by row through the key, in the order of the leases: locks are taken in msg_id order, whatever the
        -- statistics.
        SET plan_cache_mode = force_generic_plan
        SET enable_seqscan = off
        SET enable_hashjoin = off
        SET enable_mergejoin = off
        SET jit = off
        AS $body$
        #variable_conflict use_column
        DECLARE
            started timestamptz := clock_timestamp();
            reader integer := holder;
            setting record;
            ids bigint[];
            lanes text[];
            places bigint[];
        BEGIN
            SELECT q.on_ack, q.archive_until, q.max_in_flight INTO setting FROM vtq._queue AS q WHERE q.queue = %2$L;
            IF NOT FOUND THEN
                PERFORM vtq._no_queue(%2$L);
            END IF;
            IF cardinality(msg_ids) = cardinality(read_cts) IS NOT TRUE THEN
                PERFORM vtq._check_leases(msg_ids, read_cts);
            END IF;
            IF setting.on_ack = 'delete' THEN
                WITH settled AS (
                    DELETE FROM vtq.%2$I AS m
                    USING (
                        SELECT l.msg_id, l.read_ct FROM unnest(msg_ids, read_cts) AS l (msg_id, read_ct) ORDER BY l.msg_id
                    ) AS lease
                    WHERE m.msg_id = lease.msg_id AND m.read_ct = lease.read_ct AND m.read_ct > 0
                        AND m.vt <> m.ready_at AND (m.holder = reader OR reader IS NULL)
                    RETURNING m.msg_id, m.read_ct, m.vt, m.is_suspect, m.lane, m.lane_place, m.unique_key, m.unique_until,
                        m.unique_for
                ),
                late AS (
                    UPDATE vtq.%3$I AS a
                    SET outcome = 'late_success', ended_at = started
                    FROM settled AS s
                    WHERE (s.vt <= started OR s.is_suspect) AND a.msg_id = s.msg_id AND a.read_ct = s.read_ct
                )
                SELECT array_agg(s.msg_id ORDER BY s.msg_id), array_agg(s.lane) FILTER (WHERE s.lane IS NOT NULL),
                    array_agg(coalesce(s.lane_place, s.msg_id)) FILTER (WHERE s.lane IS NOT NULL)
                INTO ids, lanes, places
                FROM settled AS s
                WHERE CASE
                    WHEN s.unique_for IS NOT NULL OR s.unique_until = 'started'
                        THEN vtq._keep_key(%2$L, s.msg_id, s.unique_key, s.unique_for, started)
                    ELSE true
                END;
            ELSE
                IF setting.archive_until <= started THEN
                    PERFORM vtq._archive_ahead(%2$L);
                END IF;
                WITH settled AS (
                    DELETE FROM vtq.%2$I AS m
                    USING (
                        SELECT l.msg_id, l.read_ct FROM unnest(msg_ids, read_cts) AS l (msg_id, read_ct) ORDER BY l.msg_id
                    ) AS lease
                    WHERE m.msg_id = lease.msg_id AND m.read_ct = lease.read_ct AND m.read_ct > 0 AND m.vt <> m.ready_at
                        AND (m.holder = reader OR reader IS NULL)
                    RETURNING m.msg_id, m.vt, m.is_suspect, m.enqueued_at, m.last_read_at, m.read_ct, m.refunded_ct, m.priority,
                        m.unique_key, m.unique_until, m.unique_for, m.group_key, m.headers, m.message, m.lane, m.lane_place
                ),
                archived AS (
                    INSERT INTO vtq.%4$I (
                        msg_id, archived_at, enqueued_at, last_read_at, read_ct, refunded_ct, priority, unique_key,
                        group_key, headers, message
                    )
                    SELECT s.msg_id, started, s.enqueued_at, s.last_read_at, s.read_ct, s.refunded_ct, s.priority,
                        s.unique_key, s.group_key, s.headers, s.message
                    FROM settled AS s
                ),
                -- A sweep has written down that the lease lapsed, and nobody has overtaken it: the run came to its end.
                late AS (
                    UPDATE vtq.%3$I AS a
                    SET outcome = 'late_success', ended_at = started
                    FROM settled AS s
                    WHERE (s.vt <= started OR s.is_suspect) AND a.msg_id = s.msg_id AND a.read_ct = s.read_ct
                )
                SELECT array_agg(s.msg_id ORDER BY s.msg_id), array_agg(s.lane) FILTER (WHERE s.lane IS NOT NULL),
                    array_agg(coalesce(s.lane_place, s.msg_id)) FILTER (WHERE s.lane IS NOT NULL)
                INTO ids, lanes, places
                FROM settled AS s
                WHERE CASE
                    WHEN s.unique_for IS NOT NULL OR s.unique_until = 'started'
                        THEN vtq._keep_key(%2$L, s.msg_id, s.unique_key, s.unique_for, started)
                    ELSE true
                END;
            END IF;
            IF lanes IS NOT NULL THEN
                PERFORM vtq.%5$I(lanes, places);
            END IF;
            IF setting.max_in_flight IS NOT NULL AND ids IS NOT NULL THEN
                -- A slot is free, which a sleeper may wait for.
                PERFORM vtq._notify(%2$L);
            END IF;
            RETURN QUERY SELECT i FROM unnest(ids) AS i;
        END;
        $body$
    $template$, '_' || queue || '.ack', queue, queue || '_attempts', queue || '_archive',
        '_' || queue || '.promote');
END;
$$;

COMMENT ON FUNCTION vtq._create_ack(text) IS 'Internal: builds a queue''s own ack.';

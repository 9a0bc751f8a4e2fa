-- vtq._create_ack: builds a queue's own ack, which vtq.ack hands over to.
--   queue    queue name, checked
--   writes   the function vtq."_<queue>.ack"; its arguments and its answer are those of vtq.ack
-- See vtq._create_read for why a queue has functions of its own.
CREATE OR REPLACE FUNCTION vtq._create_ack(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    -- One statement for both settings of on_ack: {columns} and {archived} are what archiving adds.
    settle text := $sql$
                WITH lease AS MATERIALIZED (
                    SELECT array_agg(o.msg_id) AS msg_ids, array_agg(o.read_ct) AS read_cts
                    FROM (
                        SELECT l.msg_id, l.read_ct
                        FROM unnest(msg_ids, read_cts) AS l (msg_id, read_ct)
                        WHERE l.msg_id IS NOT NULL
                        ORDER BY l.msg_id, l.read_ct
                    ) AS o
                ),
                settled AS (
                    DELETE FROM vtq.%2$I AS m
                    WHERE %7$s
                    RETURNING m.msg_id, m.read_ct, m.vt, m.is_suspect, m.lane, m.lane_place, m.unique_key, m.unique_until,
                        m.unique_for{columns}
                ){archived}
                SELECT array_agg(s.msg_id ORDER BY s.msg_id) AS msg_ids,
                    array_agg(s.lane) FILTER (WHERE s.lane IS NOT NULL) AS lanes,
                    array_agg(coalesce(s.lane_place, s.msg_id)) FILTER (WHERE s.lane IS NOT NULL) AS places,
                    array_agg(s.msg_id ORDER BY s.msg_id) FILTER (WHERE s.vt <= started OR s.is_suspect) AS late_ids,
                    array_agg(s.read_ct ORDER BY s.msg_id) FILTER (WHERE s.vt <= started OR s.is_suspect) AS late_read_cts
                INTO done
                FROM settled AS s
                WHERE CASE
                    WHEN s.unique_for IS NOT NULL OR s.unique_until = 'started'
                        THEN vtq._keep_key(%3$L, s.msg_id, s.unique_key, s.unique_for, started)
                    ELSE true
                END;
    $sql$;
    archive_columns text := $sql$, m.enqueued_at, m.last_read_at, m.refunded_ct, m.priority, m.group_key, m.headers, m.message$sql$;
    archived text := $sql$,
                archived AS (
                    INSERT INTO vtq.%4$I (
                        msg_id, archived_at, enqueued_at, last_read_at, read_ct, refunded_ct, priority, unique_key,
                        group_key, headers, message
                    )
                    SELECT s.msg_id, started, s.enqueued_at, s.last_read_at, s.read_ct, s.refunded_ct, s.priority,
                        s.unique_key, s.group_key, s.headers, s.message
                    FROM settled AS s
                )$sql$;
BEGIN
    EXECUTE format($template$
        CREATE OR REPLACE FUNCTION vtq.%1$I(msg_ids bigint[], read_cts integer[], holder integer)
        RETURNS SETOF bigint
        LANGUAGE plpgsql
        SET search_path = pg_catalog
        -- The one way to the rows is their key, whatever the statistics say: a join with the leases could as well walk
        -- the whole table and look for each row among them. A key is walked in its order, so locks are taken in the
        -- order of msg_id.
        SET plan_cache_mode = force_generic_plan
        SET enable_seqscan = off
        SET enable_bitmapscan = off
        SET jit = off
        AS $body$
        #variable_conflict use_column
        DECLARE
            started timestamptz := clock_timestamp();
            reader integer := holder;
            setting record;
            done record;
        BEGIN
            SELECT q.on_ack, q.archive_until, q.max_in_flight INTO setting FROM vtq._queue AS q WHERE q.queue = %3$L;
            IF NOT FOUND THEN
                PERFORM vtq._no_queue(%3$L);
            END IF;
            IF cardinality(msg_ids) = cardinality(read_cts) IS NOT TRUE THEN
                PERFORM vtq._check_leases(msg_ids, read_cts);
            END IF;
            IF setting.on_ack = 'delete' THEN
$template$ || replace(replace(settle, '{columns}', ''), '{archived}', '') || $template$
            ELSE
                IF setting.archive_until <= started THEN
                    PERFORM vtq._archive_ahead(%3$L);
                END IF;
$template$ || replace(replace(settle, '{columns}', archive_columns), '{archived}', archived) || $template$
            END IF;
            IF done.late_ids IS NOT NULL THEN
                -- A sweep may have written down that the lease lapsed. Nobody has overtaken it: the run came to its end.
                UPDATE vtq.%5$I AS a
                SET outcome = 'late_success', ended_at = started
                WHERE a.msg_id = ANY (done.late_ids)
                    AND a.read_ct = done.late_read_cts[width_bucket(a.msg_id, done.late_ids)];
            END IF;
            IF done.lanes IS NOT NULL THEN
                PERFORM vtq.%6$I(done.lanes, done.places);
            END IF;
            IF setting.max_in_flight IS NOT NULL AND done.msg_ids IS NOT NULL THEN
                -- A slot is free, which a sleeper may wait for.
                PERFORM vtq._notify(%3$L);
            END IF;
            RETURN QUERY SELECT i FROM unnest(done.msg_ids) AS i;
        END;
        $body$
    $template$, '_' || queue || '.ack', queue, queue, queue || '_archive', queue || '_attempts',
        '_' || queue || '.promote', vtq._held_condition());
END;
$$;

COMMENT ON FUNCTION vtq._create_ack(text) IS 'Internal: builds a queue''s own ack.';

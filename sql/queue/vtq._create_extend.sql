-- vtq._create_extend: builds a queue's own extend, which vtq.extend hands over to.
--   queue    queue name, checked
--   writes   the function vtq."_<queue>.extend"; its arguments and its answer are those of vtq.extend
-- See vtq._create_read for why a queue has functions of its own.
CREATE OR REPLACE FUNCTION vtq._create_extend(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($template$
        CREATE OR REPLACE FUNCTION vtq.%1$I(
            msg_ids bigint[],
            read_cts integer[],
            visibility_timeout interval,
            started boolean[],
            holder integer
        )
        RETURNS SETOF bigint
        LANGUAGE plpgsql
        SET search_path = pg_catalog
        SET plan_cache_mode = force_generic_plan
        SET enable_seqscan = off
        SET enable_bitmapscan = off
        SET jit = off
        AS $body$
        #variable_conflict use_column
        DECLARE
            hidden_until timestamptz := clock_timestamp();
            reader integer := holder;
            has_started boolean[] := started;
            length interval;
        BEGIN
            SELECT q.visibility_timeout INTO length FROM vtq._queue AS q WHERE q.queue = %2$L;
            IF NOT FOUND THEN
                PERFORM vtq._no_queue(%2$L);
            END IF;
            IF cardinality(msg_ids) = cardinality(read_cts) IS NOT TRUE THEN
                PERFORM vtq._check_leases(msg_ids, read_cts);
            END IF;
            hidden_until := hidden_until + coalesce(
                vtq._check_length('visibility_timeout', visibility_timeout, '1 ms', '12 hours'), length
            );
            RETURN QUERY
            -- As in ack: the one way to the rows is their key, whatever the statistics say.
            WITH lease AS MATERIALIZED (
                SELECT array_agg(o.msg_id) AS msg_ids, array_agg(o.read_ct) AS read_cts, array_agg(o.started) AS started
                FROM (
                    SELECT l.msg_id, l.read_ct, l.started
                    FROM unnest(msg_ids, read_cts, has_started) AS l (msg_id, read_ct, started)
                    WHERE l.msg_id IS NOT NULL
                    ORDER BY l.msg_id, l.read_ct
                ) AS o
            ),
            held AS (
                UPDATE vtq.%2$I AS m
                SET vt = hidden_until,
                    started_read_ct = CASE
                        WHEN (SELECT l.started FROM lease AS l)[
                            width_bucket(m.msg_id, (SELECT l.msg_ids FROM lease AS l))
                        ] THEN m.read_ct
                        ELSE m.started_read_ct
                    END
                WHERE %3$s
                RETURNING m.msg_id
            )
            SELECT h.msg_id FROM held AS h ORDER BY h.msg_id;
        END;
        $body$
    $template$, '_' || queue || '.extend', queue, vtq._held_condition());
END;
$$;

COMMENT ON FUNCTION vtq._create_extend(text) IS 'Internal: builds a queue''s own extend.';

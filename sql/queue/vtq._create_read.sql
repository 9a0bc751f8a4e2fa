-- vtq._create_read: builds a queue's own read, which vtq.read hands over to.
--   queue    queue name, checked
--   writes   the function vtq."_<queue>.read"; its arguments and its answer are those of vtq.read, and has_lane: whether
--            others may wait for the end of this message
-- A statement that names its table is planned once a session; one that is put together at each call is planned at
-- each call, which costs several times what it does.
-- A queue of several levels looks first whose front has been ready longer than the queue's aging; those levels have
-- their turn before the others, the one with the oldest front first. A level is handed out in its own order either way,
-- so that a reader's one floor a level stays right.
-- A worker's walk begins at its floor, or where the others have been, if that is further on: see vtq._create_front. Only
-- in a queue of one level, for there is one such place. It moves in steps of 10 ms, so that a small read does not write
-- for it. Two readers may move it back a little, which does no harm.
-- With a floor it is one walk from there. From the front, when it comes back short, it also sweeps: readers that
-- run no worker would else never see an exhausted message leave.
CREATE OR REPLACE FUNCTION vtq._create_read(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    older text := to_regprocedure(
        vtq._own(queue, 'read') || '(interval, integer, timestamptz[], bigint[], integer)'
    )::text;
BEGIN
    -- One of before has_lane cannot be replaced.
    IF pg_get_function_result(older::regprocedure) NOT LIKE '%has_lane%' THEN
        EXECUTE 'DROP FUNCTION ' || older;
    END IF;
    EXECUTE format($template$
        CREATE OR REPLACE FUNCTION vtq.%1$I(
            visibility_timeout interval,
            qty integer,
            after_ready_at timestamptz[],
            after_msg_id bigint[],
            holder integer
        )
        RETURNS TABLE (
            msg_id bigint,
            read_ct integer,
            attempt integer,
            ready_at timestamptz,
            enqueued_at timestamptz,
            last_read_at timestamptz,
            vt timestamptz,
            headers jsonb,
            message jsonb,
            priority smallint,
            timeout interval,
            is_suspect boolean,
            has_lane boolean
        )
        LANGUAGE plpgsql
        SET search_path = pg_catalog
        -- The plan must not hang on what the statistics say of a table that is empty now and full in a second.
        SET plan_cache_mode = force_generic_plan
        SET enable_seqscan = off
        SET enable_bitmapscan = off
        SET jit = off
        AS $body$
        #variable_conflict use_column
        DECLARE
            -- One instant for the call: clock_timestamp() in a condition is volatile and cannot use an index.
            started timestamptz := clock_timestamp();
            setting record;
            length interval;
            hidden_until timestamptz;
            reader integer := holder;
            wanted integer := qty;
            place integer;
            level smallint;
            floor_at timestamptz;
            floor_id bigint;
            got integer;
            allowed integer;
            -- The places of the levels that have a turn before all have theirs.
            aged integer[];
            aged_ct integer := 0;
            due_by timestamptz := started;
            -- How far the line is handed out.
            front timestamptz;
        BEGIN
            SELECT q.visibility_timeout, q.max_attempts::integer AS max_attempts, q.timeout, q.priorities, q.aging,
                q.paused_until, num_nonnulls(q.max_in_flight, q.rate_limit) > 0 AS is_limited,
                EXISTS (
                    SELECT FROM vtq.%2$I AS m WHERE m.arrives_at IS NOT NULL AND m.arrives_at <= started
                ) AS has_arrivals,
                reader IS NOT NULL AND cardinality(q.priorities) = 1
                    AND has_sequence_privilege('vtq.%5$I'::regclass, 'USAGE')
                    AND has_sequence_privilege('vtq.%5$I'::regclass, 'UPDATE') AS has_front
            INTO setting
            FROM vtq._queue AS q
            WHERE q.queue = %2$L;
            IF NOT FOUND THEN
                PERFORM vtq._no_queue(%2$L);
            END IF;
            IF wanted IS NULL OR wanted NOT BETWEEN 1 AND 10000 THEN
                PERFORM vtq._check_qty(wanted);
            END IF;
            length := CASE
                WHEN visibility_timeout IS NULL THEN setting.visibility_timeout
                ELSE vtq._check_length('visibility_timeout', visibility_timeout, '1 ms', '12 hours')
            END;
            IF setting.paused_until > started THEN
                RETURN;
            END IF;
            IF setting.has_front THEN
                -- Before the admission: what that makes due must not lie before a front that others move meanwhile.
                front := 'epoch'::timestamptz + pg_sequence_last_value('vtq.%5$I') * interval '1 microsecond';
            END IF;
            IF setting.has_arrivals THEN
                PERFORM vtq.%4$I();
                -- What was admitted is due from a moment later than this call began.
                started := clock_timestamp();
            END IF;
            hidden_until := started + length;
            IF front > started THEN
                -- The clock was put back.
                front := NULL;
            END IF;

            IF setting.is_limited THEN
                SELECT vtq._allow(%2$L, q, wanted, started) INTO wanted FROM vtq._queue AS q WHERE q.queue = %2$L;
                IF wanted = 0 THEN
                    RETURN;
                END IF;
                allowed := wanted;
            END IF;

            IF cardinality(setting.priorities) > 1 AND setting.aging IS NOT NULL THEN
                aged := ARRAY(
                    SELECT l.place::integer
                    FROM unnest(setting.priorities) WITH ORDINALITY AS l (level, place)
                    CROSS JOIN LATERAL (
                        SELECT m.ready_at
                        FROM vtq.%2$I AS m
                        WHERE m.priority = l.level
                            AND m.ready_at <= started - setting.aging
                            AND (m.ready_at, m.msg_id)
                                > (coalesce(after_ready_at[l.place], '-infinity'), coalesce(after_msg_id[l.place], 0))
                            AND m.vt <= started
                        ORDER BY m.ready_at, m.msg_id
                        LIMIT 1
                    ) AS front
                    ORDER BY front.ready_at, l.place
                );
                aged_ct := cardinality(aged);
            END IF;

            FOR turn IN 1..aged_ct + cardinality(setting.priorities) LOOP
                place := CASE WHEN turn <= aged_ct THEN aged[turn] ELSE turn - aged_ct END;
                due_by := CASE WHEN turn <= aged_ct THEN started - setting.aging ELSE started END;
                level := setting.priorities[place];
                floor_at := coalesce(after_ready_at[place], '-infinity');
                floor_id := coalesce(after_msg_id[place], 0);
                IF floor_at > started THEN
                    -- The clock was put back.
                    floor_at := '-infinity';
                END IF;
                IF after_msg_id[place] IS NOT NULL AND front > floor_at THEN
                    -- Others of the same instant may be left.
                    floor_at := front;
                    floor_id := 0;
                END IF;
                RETURN QUERY
                WITH picked AS MATERIALIZED (
                    SELECT m.ctid AS tid, m.msg_id, m.read_ct, m.refunded_ct, m.last_read_at, m.ready_at, m.vt,
                        m.started_read_ct
                    FROM vtq.%2$I AS m
                    WHERE m.priority = level
                        AND m.ready_at <= due_by
                        AND (m.ready_at, m.msg_id) > (floor_at, floor_id)
                        AND m.vt <= started
                        AND vtq._state(
                            m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.unstarted_ct,
                            coalesce(m.max_attempts, setting.max_attempts),
                            vtq._deadline(
                                m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.expires_at, m.retry_until
                            ), started
                        ) = 'ready'
                        AND CASE
                            WHEN m.is_key_free
                                THEN vtq._superseder(%2$L, m.msg_id, m.unique_key) IS NULL
                            ELSE true
                        END
                    ORDER BY m.ready_at, m.msg_id
                    LIMIT wanted
                    FOR UPDATE SKIP LOCKED
                ),
                leased AS (
                    UPDATE vtq.%2$I AS m
                    SET vt = hidden_until,
                        read_ct = m.read_ct + 1,
                        last_read_at = started,
                        holder = reader,
                        started_read_ct = CASE WHEN reader IS NULL THEN m.read_ct + 1 ELSE m.started_read_ct END,
                        -- A lease that lapsed before its run had started is refunded, and counted for itself.
                        refunded_ct = m.refunded_ct + (m.vt <> m.ready_at AND m.started_read_ct < m.read_ct)::integer,
                        unstarted_ct = m.unstarted_ct + (m.vt <> m.ready_at AND m.started_read_ct < m.read_ct)::integer,
                        is_suspect = m.is_suspect OR (m.vt <> m.ready_at AND m.read_ct > 0),
                        -- Where it changes nothing, the update stays HOT.
                        is_key_free = m.is_key_free OR m.unique_until IS NOT DISTINCT FROM 'started'
                    WHERE m.ctid = ANY (ARRAY(SELECT p.tid FROM picked AS p))
                    RETURNING m.msg_id, m.read_ct, m.read_ct - m.refunded_ct AS attempt, m.ready_at, m.enqueued_at,
                        m.last_read_at, m.vt, m.headers, m.message, m.priority,
                        CASE
                            WHEN m.policy IS NULL THEN setting.timeout
                            ELSE vtq._own_timeout(m.policy, setting.timeout)
                        END AS timeout,
                        m.is_suspect, m.lane IS NOT NULL AS has_lane
                ),
                -- A lapsed lease that nobody settled: the worker died without a word. Whoever delivers next writes it
                -- down.
                abandoned AS (
                    INSERT INTO vtq.%3$I AS a (msg_id, read_ct, attempt, outcome, started_at, ended_at, vt)
                    SELECT p.msg_id, p.read_ct, p.read_ct - p.refunded_ct,
                        CASE WHEN p.started_read_ct < p.read_ct THEN 'never_started' ELSE 'abandoned' END,
                        p.last_read_at, p.vt, started
                    FROM picked AS p
                    WHERE p.read_ct > 0 AND p.vt <> p.ready_at
                    -- A sweep may have written it down already: as never started, when its worker had not said so yet.
                    ON CONFLICT (msg_id, read_ct) DO UPDATE
                    SET outcome = excluded.outcome, ended_at = excluded.ended_at, vt = excluded.vt
                    WHERE a.outcome = 'never_started' AND excluded.outcome = 'abandoned'
                ),
                moved AS MATERIALIZED (
                    SELECT CASE
                        WHEN setting.has_front AND max(p.ready_at) > 'epoch'
                            AND (front IS NULL OR max(p.ready_at) >= front + interval '10 milliseconds')
                            THEN setval('vtq.%5$I', (extract(epoch FROM max(p.ready_at)) * 1000000)::bigint)
                    END
                    FROM picked AS p
                )
                SELECT l.msg_id, l.read_ct, l.attempt, l.ready_at, l.enqueued_at, l.last_read_at, l.vt, l.headers,
                    l.message, l.priority, l.timeout, l.is_suspect, l.has_lane
                FROM leased AS l
                CROSS JOIN moved
                ORDER BY l.ready_at, l.msg_id;
                GET DIAGNOSTICS got = ROW_COUNT;
                wanted := wanted - got;
                EXIT WHEN wanted = 0;
            END LOOP;

            IF setting.is_limited THEN
                PERFORM vtq._spend(%2$L, q, allowed - wanted, started) FROM vtq._queue AS q WHERE q.queue = %2$L;
            END IF;
            IF wanted > 0 AND after_ready_at IS NULL AND EXISTS (
                -- Due, and yet not handed out.
                SELECT FROM vtq.%2$I AS m
                WHERE m.priority = ANY (setting.priorities) AND m.ready_at <= started AND m.vt <= started
                    AND (
                        m.is_key_free
                        OR vtq._state(
                            m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.unstarted_ct,
                            coalesce(m.max_attempts, setting.max_attempts),
                            vtq._deadline(
                                m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.expires_at, m.retry_until
                            ), started
                        ) <> 'ready'
                    )
            ) THEN
                PERFORM vtq.sweep(%2$L, 100);
            END IF;
        END;
        $body$
    $template$, '_' || queue || '.read', queue, queue || '_attempts', '_' || queue || '.admit',
        '_' || queue || '_front');
END;
$$;

COMMENT ON FUNCTION vtq._create_read(text) IS 'Internal: builds a queue''s own read.';

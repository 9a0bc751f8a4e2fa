-- vtq._create_admit: builds a queue's own admit, which lets arrived messages take their place in their lanes.
--   queue    queue name, checked
--   writes   the function vtq."_<queue>.admit"(); vtq._queue is read, vtq.<queue> written
-- A message with a group_key or an exclusive_key is sent with ready_at = infinity, so that no reader walks past it. It
-- arrives when it is due; whoever reads next admits it: the first of a free lane becomes its head and goes into the
-- line, the others wait, still at infinity, until the head's end promotes them (vtq._create_promote). So reads find
-- heads only, a million waiting messages cost them nothing, and the order in a lane is that of the commits as the
-- admission sees them: by msg_id, and behind whatever was admitted before.
-- One session admits to a lane at a time. The last row of the lane is locked meanwhile: whoever ends the head next
-- waits for it, and so sees what was admitted. A row that somebody else has locked puts the lane off to the next read.
-- Under REPEATABLE READ a session cannot see what others admitted, and admits nothing.
CREATE OR REPLACE FUNCTION vtq._create_admit(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($template$
        CREATE OR REPLACE FUNCTION vtq.%1$I()
        RETURNS void
        LANGUAGE plpgsql
        SET search_path = pg_catalog
        SET plan_cache_mode = force_generic_plan
        SET enable_seqscan = off
        SET enable_bitmapscan = off
        SET enable_hashjoin = off
        SET enable_mergejoin = off
        SET jit = off
        AS $body$
        #variable_conflict use_variable
        DECLARE
            at timestamptz := clock_timestamp();
            setting record;
            arrived bigint[];
            lanes text[];
            lane text;
            first text;
            before text;
            is_around boolean := false;
            arrival record;
            last record;
            head_ct integer;
            locked_ct integer;
            room integer;
            next bigint;
            due timestamptz;
        BEGIN
            IF current_setting('transaction_isolation') <> 'read committed' THEN
                RETURN;
            END IF;
            -- The lane of the oldest arrival, and those that follow it in the index, around its end: none is left behind,
            -- and a lane with a million arrivals holds up no other. A lock is held until the commit, and there is room
            -- for thousands in the server, not for more.
            SELECT m.lane INTO first
            FROM vtq.%2$I AS m
            WHERE m.arrives_at IS NOT NULL AND m.arrives_at <= at
            ORDER BY m.arrives_at, m.msg_id
            LIMIT 1;
            lane := first;
            FOR i IN 1..40 LOOP
                EXIT WHEN lane IS NULL;
                IF pg_try_advisory_xact_lock(hashtextextended('vtq.lane.' || %3$L || '.' || lane, 0)) THEN
                    lanes := lanes || lane;
                END IF;
                before := lane;
                SELECT m.lane INTO lane FROM vtq.%2$I AS m
                WHERE m.arrives_at IS NOT NULL AND m.lane > before ORDER BY m.lane LIMIT 1;
                IF lane IS NULL AND NOT is_around THEN
                    is_around := true;
                    SELECT m.lane INTO lane FROM vtq.%2$I AS m
                    WHERE m.arrives_at IS NOT NULL AND m.lane > '' ORDER BY m.lane LIMIT 1;
                END IF;
                EXIT WHEN is_around AND lane >= first;
            END LOOP;
            SELECT array_agg(a.msg_id) INTO arrived
            FROM unnest(lanes) AS l
            CROSS JOIN LATERAL (
                SELECT m.msg_id FROM vtq.%2$I AS m
                WHERE m.lane = l AND m.arrives_at IS NOT NULL AND m.arrives_at <= at
                ORDER BY m.arrives_at, m.msg_id
                LIMIT 200 / cardinality(lanes)
            ) AS a;
            IF arrived IS NULL THEN
                RETURN;
            END IF;
            SELECT q.exclusive_limit, q.group_on_dead INTO setting FROM vtq._queue AS q WHERE q.queue = %3$L;
            IF setting.group_on_dead = 'continue' THEN
                PERFORM vtq.%5$I(ARRAY(SELECT l FROM unnest(lanes) AS l WHERE starts_with(l, 'g:')), arrived, at);
                lanes := ARRAY(SELECT l FROM unnest(lanes) AS l WHERE NOT starts_with(l, 'g:'));
            END IF;
            FOR arrival IN
                SELECT a.lane, array_agg(a.msg_id ORDER BY a.msg_id) AS ids
                FROM (
                    SELECT m.msg_id, m.lane FROM vtq.%2$I AS m
                    -- By the key: the index of arrivals would lead past every message that has not been admitted yet.
                    WHERE m.msg_id = ANY (arrived) AND m.lane = ANY (lanes) AND coalesce(m.arrives_at <= at, false)
                    FOR UPDATE SKIP LOCKED
                ) AS a
                GROUP BY a.lane
            LOOP
                SELECT m.msg_id, coalesce(m.lane_place, m.msg_id) AS place INTO last
                FROM vtq.%2$I AS m
                WHERE m.lane = arrival.lane AND m.arrives_at IS NULL
                ORDER BY coalesce(m.lane_place, m.msg_id) DESC, m.msg_id DESC
                LIMIT 1;
                IF last.msg_id IS NULL THEN
                    room := CASE WHEN starts_with(arrival.lane, 'g:') THEN 1 ELSE setting.exclusive_limit END;
                ELSIF starts_with(arrival.lane, 'g:') THEN
                    room := 0;
                    PERFORM FROM vtq.%2$I AS m WHERE m.msg_id = last.msg_id FOR UPDATE SKIP LOCKED;
                    CONTINUE WHEN NOT FOUND;
                ELSE
                    SELECT count(*) INTO head_ct FROM (
                        SELECT FROM vtq.%2$I AS m
                        WHERE m.lane = arrival.lane AND m.arrives_at IS NULL AND m.ready_at < 'infinity'
                        ORDER BY coalesce(m.lane_place, m.msg_id), m.msg_id LIMIT setting.exclusive_limit
                    ) AS h;
                    SELECT count(*) INTO locked_ct FROM (
                        SELECT FROM vtq.%2$I AS m
                        WHERE m.lane = arrival.lane AND m.arrives_at IS NULL AND m.ready_at < 'infinity'
                        ORDER BY coalesce(m.lane_place, m.msg_id), m.msg_id LIMIT setting.exclusive_limit
                        FOR UPDATE SKIP LOCKED
                    ) AS h;
                    CONTINUE WHEN locked_ct < head_ct;
                    room := setting.exclusive_limit - head_ct;
                END IF;
                IF setting.group_on_dead = 'pause' AND starts_with(arrival.lane, 'g:') THEN
                    room := CASE
                        WHEN EXISTS (SELECT FROM vtq.%4$I AS d WHERE d.group_key = substr(arrival.lane, 3)) THEN 0
                        WHEN EXISTS (
                            SELECT FROM vtq.%2$I AS m
                            WHERE m.lane = arrival.lane AND m.arrives_at IS NULL AND m.ready_at < 'infinity'
                        ) THEN 0
                        ELSE 1
                    END;
                END IF;
                UPDATE vtq.%2$I AS m
                SET arrives_at = NULL,
                    lane_place = CASE
                        -- A redriven message that its group has waited for.
                        WHEN m.lane_place IS NOT NULL THEN m.lane_place
                        WHEN m.msg_id < last.place THEN last.place + 1
                    END
                WHERE m.msg_id = ANY (arrival.ids);
                FOR i IN 1..room LOOP
                    SELECT m.msg_id INTO next
                    FROM vtq.%2$I AS m
                    WHERE m.lane = arrival.lane AND m.arrives_at IS NULL AND m.ready_at = 'infinity'
                    ORDER BY coalesce(m.lane_place, m.msg_id), m.msg_id
                    LIMIT 1
                    FOR UPDATE SKIP LOCKED;
                    EXIT WHEN next IS NULL;
                    due := vtq._key_slot(%3$L, arrival.lane, at);
                    UPDATE vtq.%2$I AS m SET ready_at = due, vt = due WHERE m.msg_id = next;
                END LOOP;
            END LOOP;
        END;
        $body$
    $template$, '_' || queue || '.admit', queue, queue, queue || '_dlq',
        '_' || queue || '.admit_groups');
END;
$$;

COMMENT ON FUNCTION vtq._create_admit(text) IS 'Internal: builds a queue''s own admit.';

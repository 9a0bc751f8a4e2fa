-- vtq._create_admit_groups: builds a queue's own admit_groups, which lets arrived messages of groups take their places.
--   queue    queue name, checked
--   writes   the function vtq."_<queue>.admit_groups"(lanes, arrived, at), called by the queue's own admit, which has the
--            lanes locked; vtq.<queue>
-- All groups at once: a group that stands still for a dead letter is not this function's, since it asks more of each.
CREATE OR REPLACE FUNCTION vtq._create_admit_groups(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($template$
        CREATE OR REPLACE FUNCTION vtq.%1$I(lanes text[], arrived bigint[], at timestamptz)
        RETURNS void
        LANGUAGE plpgsql
        SET search_path = pg_catalog
        SET plan_cache_mode = force_generic_plan
        SET enable_seqscan = off
        SET enable_bitmapscan = off
        SET jit = off
        AS $body$
        DECLARE
            has_rate boolean := (SELECT q.key_rate_limit IS NOT NULL FROM vtq._queue AS q WHERE q.queue = %3$L);
            arrivals record;
            lasts record;
            places record;
        BEGIN
            SELECT array_agg(a.msg_id) AS msg_ids, array_agg(a.lane) AS lanes, array_agg(a.lane_place) AS places
            INTO arrivals
            FROM (
                SELECT m.msg_id, m.lane, m.lane_place FROM vtq.%2$I AS m
                -- By the key: the index of arrivals would lead past every message that has not been admitted yet.
                WHERE m.msg_id = ANY (arrived) AND m.lane = ANY (lanes) AND coalesce(m.arrives_at <= at, false)
                FOR UPDATE SKIP LOCKED
            ) AS a;
            -- The last of each group that has one. Locked, it makes whoever ends the group's head wait for this.
            SELECT array_agg(l.lane) AS lanes, array_agg(l.msg_id) AS msg_ids, array_agg(l.place) AS places
            INTO lasts
            FROM (
                SELECT of.lane, t.msg_id, t.place
                FROM (SELECT DISTINCT lane FROM unnest(arrivals.lanes) AS lane) AS of
                CROSS JOIN LATERAL (
                    SELECT m.msg_id, coalesce(m.lane_place, m.msg_id) AS place
                    FROM vtq.%2$I AS m
                    WHERE m.lane = of.lane AND m.arrives_at IS NULL
                    ORDER BY coalesce(m.lane_place, m.msg_id) DESC, m.msg_id DESC
                    LIMIT 1
                ) AS t
            ) AS l;
            WITH locked AS MATERIALIZED (
                SELECT m.msg_id FROM vtq.%2$I AS m WHERE m.msg_id = ANY (lasts.msg_ids) FOR UPDATE SKIP LOCKED
            ),
            last AS (
                SELECT l.lane, l.place, k.msg_id IS NOT NULL AS is_locked
                FROM unnest(lasts.lanes, lasts.msg_ids, lasts.places) AS l (lane, msg_id, place)
                LEFT JOIN locked AS k ON k.msg_id = l.msg_id
            ),
            placed AS (
                SELECT a.msg_id, a.lane,
                    -- A redriven message that its group has waited for has a place already.
                    coalesce(a.place, CASE WHEN a.msg_id < l.place THEN l.place + 1 END) AS place,
                    l.lane IS NULL AND row_number() OVER (
                        PARTITION BY a.lane ORDER BY coalesce(a.place, a.msg_id), a.msg_id
                    ) = 1 AS is_head
                FROM unnest(arrivals.msg_ids, arrivals.lanes, arrivals.places) AS a (msg_id, lane, place)
                LEFT JOIN last AS l ON l.lane = a.lane
                -- Where somebody else has the last one, the group is put off to the next read.
                WHERE l.is_locked IS NOT FALSE
            )
            SELECT array_agg(p.msg_id ORDER BY p.msg_id) AS msg_ids, array_agg(p.place ORDER BY p.msg_id) AS places,
                array_agg(
                    CASE WHEN NOT p.is_head THEN 'infinity' WHEN has_rate THEN vtq._key_slot(%3$L, p.lane, at) ELSE at END
                    ORDER BY p.msg_id
                ) AS due
            INTO places
            FROM placed AS p;
            UPDATE vtq.%2$I AS m
            SET arrives_at = NULL,
                lane_place = places.places[width_bucket(m.msg_id, places.msg_ids)],
                ready_at = places.due[width_bucket(m.msg_id, places.msg_ids)],
                vt = places.due[width_bucket(m.msg_id, places.msg_ids)]
            WHERE m.msg_id = ANY (places.msg_ids);
        END;
        $body$
    $template$, '_' || queue || '.admit_groups', queue, queue);
END;
$$;

COMMENT ON FUNCTION vtq._create_admit_groups(text) IS 'Internal: builds a queue''s own admit_groups.';

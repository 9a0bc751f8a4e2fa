-- vtq._create_promote: builds a queue's own promote, which lets the next messages of lanes run.
--   queue    queue name, checked
--   writes   the function vtq."_<queue>.promote"(lanes, places); vtq.<queue>
-- Called in the transaction that ends the heads, once for each, with the places that they had: what waits lies behind
-- them, so that the search does not walk past what has ended before. The promoted message goes to the end of the
-- line: lanes take turns.
CREATE OR REPLACE FUNCTION vtq._create_promote(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($template$
        CREATE OR REPLACE FUNCTION vtq.%1$I(lanes text[], places bigint[])
        RETURNS void
        LANGUAGE plpgsql
        SET search_path = pg_catalog
        SET plan_cache_mode = force_generic_plan
        SET enable_seqscan = off
        SET enable_bitmapscan = off
        SET jit = off
        AS $body$
        DECLARE
            at timestamptz := clock_timestamp();
            ended record;
            next bigint;
            due timestamptz;
            is_any boolean := false;
        BEGIN
            -- In the order of the lanes, so that two sessions cannot wait for each other.
            FOR ended IN SELECT e.lane, e.place FROM unnest(lanes, places) AS e (lane, place) ORDER BY e.lane, e.place LOOP
                IF starts_with(ended.lane, 'g:') THEN
                    -- Waits for an admission that has this row locked.
                    SELECT m.msg_id INTO next
                    FROM vtq.%2$I AS m
                    WHERE m.lane = ended.lane AND m.arrives_at IS NULL AND coalesce(m.lane_place, m.msg_id) >= ended.place
                        AND m.ready_at = 'infinity'
                    ORDER BY coalesce(m.lane_place, m.msg_id), m.msg_id
                    LIMIT 1
                    FOR UPDATE;
                ELSE
                    -- One that is locked is being promoted for another head.
                    SELECT m.msg_id INTO next
                    FROM vtq.%2$I AS m
                    WHERE m.lane = ended.lane AND m.arrives_at IS NULL AND coalesce(m.lane_place, m.msg_id) >= ended.place
                        AND m.ready_at = 'infinity'
                    ORDER BY coalesce(m.lane_place, m.msg_id), m.msg_id
                    LIMIT 1
                    FOR UPDATE SKIP LOCKED;
                END IF;
                CONTINUE WHEN next IS NULL;
                due := vtq._key_slot(%3$L, ended.lane, at);
                UPDATE vtq.%2$I AS m SET ready_at = due, vt = due WHERE m.msg_id = next;
                is_any := true;
            END LOOP;
            IF is_any THEN
                PERFORM vtq._notify(%3$L);
            END IF;
        END;
        $body$
    $template$, '_' || queue || '.promote', queue, queue);
END;
$$;

COMMENT ON FUNCTION vtq._create_promote(text) IS 'Internal: builds a queue''s own promote.';

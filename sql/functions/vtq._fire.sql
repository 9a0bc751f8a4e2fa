-- vtq._fire: sends ticks of a schedule and moves its plan on, in one transaction.
--   name, revision, seen_next_at   the schedule as the caller read it; seen_next_at null: not worked out yet
--   ticks       what to send, in order
--   next_at     the first tick after those and after what is skipped; null: there is none any more
--   skipped_ct  how many ticks are passed over
--   returns  the ticks that were sent now, with their messages. Nothing when another worker was first, or
--            when the schedule has changed meanwhile
--   writes   vtq.<queue>, vtq._tick, vtq._schedule
--   index    primary keys
--   raises   as vtq.send
-- Whoever locks the row fires it, and what it has fired is in the row when the lock ends. A row in vtq._tick is
-- looked for all the same: the plan may have been set back, by a clock or by hand.
CREATE OR REPLACE FUNCTION vtq._fire(
    name text,
    revision bigint,
    seen_next_at timestamptz,
    ticks timestamptz[],
    next_at timestamptz,
    skipped_ct bigint
)
RETURNS TABLE (tick_at timestamptz, msg_id bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    started timestamptz := clock_timestamp();
    schedule vtq._schedule;
    sent integer := 0;
    tick timestamptz;
    id bigint;
BEGIN
    SELECT s.* INTO schedule
    FROM vtq._schedule AS s
    WHERE s.name = _fire.name
        AND s.revision = _fire.revision
        AND s.next_at = coalesce(seen_next_at, '-infinity')
        AND (s.paused_until IS NULL OR s.paused_until <= started OR seen_next_at IS NULL)
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOREACH tick IN ARRAY ticks LOOP
        CONTINUE WHEN EXISTS (SELECT FROM vtq._tick AS t WHERE t.name = schedule.name AND t.tick_at = tick);
        id := vtq._send_scheduled(schedule, tick);
        INSERT INTO vtq._tick (name, tick_at, queue, msg_id, sent_at)
        VALUES (schedule.name, tick, schedule.queue, id, started);
        sent := sent + 1;
        tick_at := tick;
        msg_id := id;
        RETURN NEXT;
    END LOOP;
    UPDATE vtq._schedule AS s
    SET next_at = coalesce(_fire.next_at, 'infinity'),
        due_at = CASE
            WHEN s.paused_until > started THEN s.paused_until
            ELSE coalesce(_fire.next_at, 'infinity')
        END,
        last_tick_at = CASE WHEN sent > 0 THEN tick ELSE s.last_tick_at END,
        last_sent_at = CASE WHEN sent > 0 THEN started ELSE s.last_sent_at END,
        last_msg_id = coalesce(id, s.last_msg_id),
        sent_ct = s.sent_ct + sent,
        skipped_ct = s.skipped_ct + _fire.skipped_ct,
        error = NULL, error_at = NULL
    WHERE s.name = schedule.name;
    DELETE FROM vtq._tick AS t WHERE t.name = schedule.name AND t.tick_at < started - interval '1 day';
END;
$$;

COMMENT ON FUNCTION vtq._fire(text, bigint, timestamptz, timestamptz[], timestamptz, bigint)
    IS 'Internal: sends ticks of a schedule and moves its plan on, in one transaction.';

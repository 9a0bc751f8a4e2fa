-- vtq._send_scheduled: sends the message of a schedule, with the header vtq_schedule.
--   schedule  its row
--   tick_at   the tick; null: it was sent by hand
--   returns  the msg_id
--   writes   vtq.<queue>
--   raises   as vtq.send
-- Not by vtq.send: that refuses headers which begin with vtq_, and those are what a handler goes by.
CREATE OR REPLACE FUNCTION vtq._send_scheduled(schedule vtq._schedule, tick_at timestamptz)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    place record;
    block jsonb := jsonb_build_object('name', schedule.name);
    id bigint;
BEGIN
    place := vtq._check_send(
        schedule.queue, schedule.delay, NULL, schedule.priority, schedule.max_attempts, schedule.policy, NULL
    );
    block := block || CASE
        WHEN tick_at IS NULL THEN jsonb '{"by_hand": true}'
        ELSE jsonb_build_object('tick', vtq._iso(tick_at))
    END;
    EXECUTE format($sql$
        INSERT INTO vtq.%1$I (enqueued_at, ready_at, vt, priority, max_attempts, policy, expires_at, headers, message)
        VALUES ($1, $2, $2, $3, $4, $5, $1 + $6, $7, $8)
        RETURNING msg_id
    $sql$, schedule.queue)
    INTO id
    USING place.enqueued_at, place.ready_at, place.level, schedule.max_attempts, schedule.policy,
        schedule.expires_in, coalesce(schedule.headers, '{}') || jsonb_build_object('vtq_schedule', block),
        schedule.message;
    RETURN id;
END;
$$;

COMMENT ON FUNCTION vtq._send_scheduled(vtq._schedule, timestamptz)
    IS 'Internal: sends the message of a schedule, with the header vtq_schedule.';

-- vtq._waits_for: one sentence on what a message in a lane waits for.
--   queue        queue name
--   setting      its row of the catalogue
--   msg_id, lane, arrives_at   of the message
--   at           the instant to judge at
--   index        _<queue>_lanes
CREATE OR REPLACE FUNCTION vtq._waits_for(
    queue text,
    setting vtq._queue,
    msg_id bigint,
    lane text,
    arrives_at timestamptz,
    at timestamptz
)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    key text := substr(lane, 3);
    heads record;
    dead bigint;
BEGIN
    IF arrives_at > at THEN
        RETURN format('it is not due before %s, in %s, and then waits for its turn', vtq._iso(arrives_at), arrives_at - at);
    END IF;
    IF arrives_at IS NOT NULL THEN
        RETURN 'it has arrived, and the next read gives it its place';
    END IF;
    EXECUTE format($sql$
        SELECT count(*) AS ct, min(h.msg_id) AS first, min(vtq._state(
            h.ready_at, h.vt, h.read_ct, h.refunded_ct, h.started_read_ct, h.unstarted_ct,
            coalesce(h.max_attempts, $2), h.expires_at, $3
        )) AS state
        FROM (
            SELECT m.* FROM vtq.%1$I AS m
            WHERE m.lane = $1 AND m.arrives_at IS NULL AND m.ready_at < 'infinity'
            LIMIT $4
        ) AS h
    $sql$, queue) INTO heads USING lane, setting.max_attempts::integer, at, setting.exclusive_limit;
    IF starts_with(lane, 'x:') THEN
        RETURN format(
            'it waits for a slot of exclusive_key "%s": %s of %s are taken', key, heads.ct, setting.exclusive_limit
        );
    END IF;
    IF heads.ct = 0 THEN
        EXECUTE format('SELECT min(d.msg_id) FROM vtq.%I AS d WHERE d.group_key = $1', queue || '_dlq') INTO dead USING key;
        RETURN format('its group "%s" is paused until dead letter %s is redriven or purged', key, dead);
    END IF;
    RETURN format(
        'it waits for its turn in group "%s", behind message %s, which is %s', key, heads.first,
        replace(heads.state, '_', ' ')
    );
END;
$$;

COMMENT ON FUNCTION vtq._waits_for(text, vtq._queue, bigint, text, timestamptz, timestamptz)
    IS 'Internal: one sentence on what a message in a lane waits for.';

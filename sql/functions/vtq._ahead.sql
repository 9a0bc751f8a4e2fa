-- vtq._ahead: how many messages stand in front of a ready one in its level, in flight or ready, counted up to 1000.
--   queue, setting      the queue and its row of the catalogue
--   priority .. msg_id  the message's place
--   at                  the instant to judge at
--   index    _<queue>_line
CREATE OR REPLACE FUNCTION vtq._ahead(
    queue text,
    setting vtq._queue,
    priority smallint,
    ready_at timestamptz,
    msg_id bigint,
    at timestamptz
)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    ahead bigint;
BEGIN
    EXECUTE format($sql$
        SELECT count(*) FROM (
            SELECT FROM vtq.%1$I AS m
            WHERE m.priority = $1 AND m.ready_at <= $2 AND (m.ready_at, m.msg_id) < ($2, $3) AND m.vt <= $4
            LIMIT 1000
        ) AS f
    $sql$, queue) INTO ahead USING priority, ready_at, msg_id, at;
    RETURN ahead;
END;
$$;

COMMENT ON FUNCTION vtq._ahead(text, vtq._queue, smallint, timestamptz, bigint, timestamptz)
    IS 'Internal: how many messages stand in front of a ready one, counted up to 1000.';

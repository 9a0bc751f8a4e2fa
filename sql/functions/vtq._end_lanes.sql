-- vtq._end_lanes: notes whose turn ends with messages that are about to go.
--   queue    queue name
--   msg_ids  messages locked by the caller
--   returns  the lanes whose head is among them, and the places that those have; nulls where there are none
--   index    primary key
CREATE OR REPLACE FUNCTION vtq._end_lanes(queue text, msg_ids bigint[], OUT lanes text[], OUT places bigint[])
RETURNS record
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
BEGIN
    EXECUTE format($sql$
        SELECT array_agg(m.lane), array_agg(coalesce(m.lane_place, m.msg_id))
        FROM vtq.%1$I AS m
        WHERE m.msg_id = ANY ($1) AND m.lane IS NOT NULL AND m.arrives_at IS NULL AND m.ready_at < 'infinity'
    $sql$, queue) INTO lanes, places USING msg_ids;
END;
$$;

COMMENT ON FUNCTION vtq._end_lanes(text, bigint[]) IS 'Internal: notes whose turn ends with messages that are about to go.';

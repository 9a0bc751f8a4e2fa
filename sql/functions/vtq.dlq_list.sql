-- vtq.dlq_list: lists dead letters, the last one to die first, a page at a time.
--   queue    queue name
--   qty      how many at the most, 1 to 10000
--   before_dead_lettered_at, before_msg_id
--            the last row of the page before; null: from the top
--   returns  one row per dead letter; reason .. error_message come from its block
--   index    _<queue>_dlq_age
--   raises   VT001, 22023, VT004
CREATE OR REPLACE FUNCTION vtq.dlq_list(
    queue text,
    qty integer DEFAULT 50,
    before_dead_lettered_at timestamptz DEFAULT NULL,
    before_msg_id bigint DEFAULT NULL
)
RETURNS TABLE (
    msg_id bigint,
    dead_lettered_at timestamptz,
    enqueued_at timestamptz,
    attempts integer,
    read_ct integer,
    redrives integer,
    reason text,
    error_class text,
    error_message text
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
BEGIN
    PERFORM vtq._check_dlq(queue);
    PERFORM vtq._check_qty(qty);
    RETURN QUERY EXECUTE format($sql$
        SELECT d.msg_id, d.dead_lettered_at, d.enqueued_at, d.read_ct - d.refunded_ct, d.read_ct,
            vtq._redrives(d.headers), b.block ->> 'reason', b.block ->> 'error_class',
            b.block ->> 'error_message'
        FROM vtq.%1$I AS d
        CROSS JOIN LATERAL (SELECT d.headers -> 'vtq_dead_letter' AS block) AS b
        WHERE (d.dead_lettered_at, d.msg_id) < ($1, $2)
        ORDER BY d.dead_lettered_at DESC, d.msg_id DESC
        LIMIT $3
    $sql$, queue || '_dlq')
    USING coalesce(before_dead_lettered_at, 'infinity'), coalesce(before_msg_id, 9223372036854775807), qty;
END;
$$;

COMMENT ON FUNCTION vtq.dlq_list(text, integer, timestamptz, bigint)
    IS 'Lists dead letters, the last one to die first, a page at a time.';

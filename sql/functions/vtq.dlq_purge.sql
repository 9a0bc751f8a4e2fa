-- vtq.dlq_purge: removes dead letters for good.
--   queue       queue name
--   msg_id      this one, or
--   older_than  those that died this long ago or longer; '0' means all of them
--   qty         how many at the most in this call, 1 to 10000; call again until it answers 0
--   returns  how many were removed
--   writes   vtq.<queue>_dlq; vtq.<queue> where a group was paused for one of them
--   index    primary key, or _<queue>_dlq_age
--   raises   VT001, 22023, VT004
CREATE OR REPLACE FUNCTION vtq.dlq_purge(
    queue text,
    msg_id bigint DEFAULT NULL,
    older_than interval DEFAULT NULL,
    qty integer DEFAULT 10000
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    removed_ct bigint;
    groups text[];
BEGIN
    PERFORM vtq._check_dlq(queue);
    PERFORM vtq._check_qty(qty);
    IF (msg_id IS NULL) = (older_than IS NULL) THEN
        RAISE EXCEPTION 'give msg_id or older_than, one of the two; older_than => ''0'' purges all'
            USING ERRCODE = '22023';
    END IF;
    IF msg_id IS NOT NULL THEN
        EXECUTE format($sql$
            WITH removed AS (
                DELETE FROM vtq.%1$I AS d WHERE d.msg_id = $1 RETURNING d.group_key
            )
            SELECT count(*), array_agg(DISTINCT r.group_key) FROM removed AS r
        $sql$, queue || '_dlq')
        INTO removed_ct, groups
        USING msg_id;
    ELSE
        EXECUTE format($sql$
            WITH removed AS (
                DELETE FROM vtq.%1$I AS d
                WHERE d.ctid = ANY (ARRAY(
                    SELECT p.ctid FROM vtq.%1$I AS p
                    WHERE p.dead_lettered_at <= $1
                    ORDER BY p.dead_lettered_at, p.msg_id
                    LIMIT $2
                    FOR UPDATE SKIP LOCKED
                ))
                RETURNING d.group_key
            )
            SELECT count(*), array_agg(DISTINCT r.group_key) FROM removed AS r
        $sql$, queue || '_dlq')
        INTO removed_ct, groups
        USING clock_timestamp() - vtq._check_length('older_than', older_than, interval '0', interval '36500 days'), qty;
    END IF;
    PERFORM vtq._unpause_groups(queue, array_remove(groups, NULL));
    RETURN removed_ct;
END;
$$;

COMMENT ON FUNCTION vtq.dlq_purge(text, bigint, interval, integer)
    IS 'Removes dead letters for good: one by its msg_id, or those older than a length, up to qty in a call.';

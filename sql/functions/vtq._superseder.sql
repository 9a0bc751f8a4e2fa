-- vtq._superseder: the newer copy that a message gives way to, if it should run again.
--   queue .. superseded_by   of a message whose key is free because it was started
--   returns  the newer copy's msg_id; null when there is none
--   index    _<queue>_unique, _<queue>_freed
CREATE OR REPLACE FUNCTION vtq._superseder(queue text, msg_id bigint, unique_key text, superseded_by bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    newer bigint := superseded_by;
BEGIN
    IF newer IS NULL THEN
        EXECUTE format($sql$
            SELECT max(n.msg_id)
            FROM (
                SELECT w.msg_id FROM vtq.%1$I AS w
                WHERE w.unique_key = $1 AND w.unique_key IS NOT NULL AND NOT w.is_key_free AND w.msg_id > $2
                UNION ALL
                SELECT f.msg_id FROM vtq.%1$I AS f WHERE f.unique_key = $1 AND f.is_key_free AND f.msg_id > $2
            ) AS n
        $sql$, queue) INTO newer USING unique_key, msg_id;
    END IF;
    RETURN newer;
END;
$$;

COMMENT ON FUNCTION vtq._superseder(text, bigint, text, bigint)
    IS 'Internal: the newer copy that a message gives way to, if it should run again.';

-- vtq._superseder: the newer copy that a message gives way to, if it should run again.
--   queue .. unique_key   of a message whose key is free because it was started
--   returns  the newer copy's msg_id: one that is live, or has succeeded; null when there is none
--   index    _<queue>_unique, _<queue>_freed, _taken_pk
-- An ack takes a copy from the one place and puts it into the other, so one statement looks at both.
CREATE OR REPLACE FUNCTION vtq._superseder(queue text, msg_id bigint, unique_key text)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    newer bigint;
BEGIN
    EXECUTE format($sql$
        SELECT max(n.msg_id)
        FROM (
            SELECT w.msg_id FROM vtq.%1$I AS w
            WHERE w.unique_key = $1 AND w.unique_key IS NOT NULL AND NOT w.is_key_free AND w.msg_id > $2
            UNION ALL
            SELECT f.msg_id FROM vtq.%1$I AS f WHERE f.unique_key = $1 AND f.is_key_free AND f.msg_id > $2
            UNION ALL
            SELECT t.msg_id FROM vtq._taken AS t WHERE t.queue = $3 AND t.unique_key = $1 AND t.msg_id > $2
        ) AS n
    $sql$, queue) INTO newer USING unique_key, msg_id, queue;
    RETURN newer;
END;
$$;

COMMENT ON FUNCTION vtq._superseder(text, bigint, text)
    IS 'Internal: the newer copy that a message gives way to, if it should run again.';

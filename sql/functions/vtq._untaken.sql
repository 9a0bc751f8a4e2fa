-- vtq._untaken: those of some dead letters that may go back into their queue: whose unique key nobody has.
--   queue    queue name
--   msg_ids  the dead letters
--   returns  their msg_ids in order; of several with one key the first
--   index    primary keys, _<queue>_unique, _taken_pk
CREATE OR REPLACE FUNCTION vtq._untaken(queue text, msg_ids bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    ids bigint[];
BEGIN
    EXECUTE format($sql$
        SELECT array_agg(f.msg_id ORDER BY f.msg_id)
        FROM (
            SELECT d.msg_id, d.unique_key, row_number() OVER (PARTITION BY d.unique_key ORDER BY d.msg_id) AS nth
            FROM vtq.%2$I AS d
            WHERE d.msg_id = ANY ($1)
        ) AS f
        WHERE f.unique_key IS NULL OR (f.nth = 1 AND vtq._key_holder($2, f.unique_key) IS NULL)
    $sql$, queue, queue || '_dlq') INTO ids USING msg_ids, queue;
    RETURN ids;
END;
$$;

COMMENT ON FUNCTION vtq._untaken(text, bigint[])
    IS 'Internal: those of some dead letters whose unique key nobody has.';

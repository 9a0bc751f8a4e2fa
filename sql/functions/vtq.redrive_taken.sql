-- vtq.redrive_taken: counts the dead letters that cannot be redriven, since another message has their unique_key.
--   queue    queue name
--   filter   as in vtq.redrive_all
--   returns  how many
--   index    _<queue>_dlq_age, _<queue>_unique
--   raises   VT001, 22023, VT004
CREATE OR REPLACE FUNCTION vtq.redrive_taken(queue text, filter jsonb DEFAULT '{}')
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    wanted record;
    taken_ct bigint;
BEGIN
    wanted := vtq._letter_filter(filter);
    PERFORM vtq._check_dlq(queue);
    EXECUTE format($sql$
        SELECT count(*)
        FROM vtq.%1$I AS d
        WHERE d.dead_lettered_at < $1 AND d.dead_lettered_at > $2 AND d.headers -> 'vtq_dead_letter' @> $3
            AND CASE WHEN d.unique_key IS NOT NULL THEN vtq._key_holder($4, d.unique_key) IS NOT NULL ELSE false END
    $sql$, queue || '_dlq') INTO taken_ct USING wanted.dead_before, wanted.dead_after, wanted.block, queue;
    RETURN taken_ct;
END;
$$;

COMMENT ON FUNCTION vtq.redrive_taken(text, jsonb)
    IS 'Counts the dead letters that cannot be redriven, since another message has their unique_key.';

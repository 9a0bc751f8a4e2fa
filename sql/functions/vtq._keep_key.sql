-- vtq._keep_key: what a success means for the unique key of its message.
--   queue .. unique_for   of the message, which the caller's statement is removing
--   done_at               the instant of the success
--   returns  true
--   writes   vtq._taken for unique_for; superseded_by of older copies that are still out, for unique_until started
--   index    _taken_pk, _<queue>_freed
-- An older copy runs on, but should it fail, it must not run again after this one: it would undo its result.
CREATE OR REPLACE FUNCTION vtq._keep_key(
    queue text,
    msg_id bigint,
    unique_key text,
    unique_until text,
    unique_for interval,
    done_at timestamptz
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    IF unique_for IS NOT NULL THEN
        INSERT INTO vtq._taken AS t (queue, unique_key, msg_id, until)
        VALUES (_keep_key.queue, _keep_key.unique_key, _keep_key.msg_id, done_at + unique_for)
        ON CONFLICT (queue, unique_key) DO UPDATE
        SET msg_id = excluded.msg_id, until = excluded.until
        WHERE t.until < excluded.until;
    END IF;
    IF unique_until = 'started' THEN
        -- It waits for whoever is settling one of them: a failure that does not see this message any more must see this.
        EXECUTE format($sql$
            UPDATE vtq.%1$I AS m
            SET superseded_by = $2
            WHERE m.ctid = ANY (ARRAY(
                SELECT o.ctid FROM vtq.%1$I AS o
                WHERE o.unique_key = $1 AND o.is_key_free AND o.msg_id < $2
                ORDER BY o.msg_id
                FOR UPDATE
            ))
        $sql$, queue) USING unique_key, msg_id;
    END IF;
    RETURN true;
END;
$$;

COMMENT ON FUNCTION vtq._keep_key(text, bigint, text, text, interval, timestamptz)
    IS 'Internal: what a success means for the unique key of its message.';

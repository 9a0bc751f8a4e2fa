-- vtq._keep_key: what a success means for the unique key of its message.
--   queue .. unique_for   of the message, which the caller's statement is removing
--   done_at               the instant of the success
--   returns  true
--   writes   vtq._taken, for unique_for, or when older copies of it run still
--   index    _taken_pk, _<queue>_freed
-- An older copy runs on, but should it fail, it must not run again after this one: it would undo its result.
CREATE OR REPLACE FUNCTION vtq._keep_key(
    queue text,
    msg_id bigint,
    unique_key text,
    unique_for interval,
    done_at timestamptz
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    is_followed boolean := false;
BEGIN
    IF unique_for IS NULL THEN
        EXECUTE format(
            'SELECT EXISTS (SELECT FROM vtq.%I AS o WHERE o.unique_key = $1 AND o.is_key_free AND o.msg_id < $2)', queue
        ) INTO is_followed USING unique_key, msg_id;
    END IF;
    IF unique_for IS NOT NULL OR is_followed THEN
        INSERT INTO vtq._taken (queue, unique_key, msg_id, until)
        VALUES (_keep_key.queue, _keep_key.unique_key, _keep_key.msg_id, done_at + coalesce(unique_for, '0'));
    END IF;
    RETURN true;
END;
$$;

COMMENT ON FUNCTION vtq._keep_key(text, bigint, text, interval, timestamptz)
    IS 'Internal: what a success means for the unique key of its message.';

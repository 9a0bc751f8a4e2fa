-- vtq._key_holder: which message has a unique key.
--   queue, unique_key   the key
--   returns  the msg_id of the live message that has it, else of the one that succeeded and keeps it taken; null: nobody
--   index    _<queue>_unique, _taken_pk
CREATE OR REPLACE FUNCTION vtq._key_holder(queue text, unique_key text)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    holder bigint;
BEGIN
    EXECUTE format(
        'SELECT m.msg_id FROM vtq.%I AS m WHERE m.unique_key = $1 AND m.unique_key IS NOT NULL AND NOT m.is_key_free', queue
    ) INTO holder USING unique_key;
    IF holder IS NULL THEN
        SELECT max(t.msg_id) INTO holder FROM vtq._taken AS t
        WHERE t.queue = _key_holder.queue AND t.unique_key = _key_holder.unique_key AND t.until > clock_timestamp();
    END IF;
    RETURN holder;
END;
$$;

COMMENT ON FUNCTION vtq._key_holder(text, text) IS 'Internal: which message has a unique key.';

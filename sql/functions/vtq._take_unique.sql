-- vtq._take_unique: what becomes of a send whose unique key may be taken.
--   queue .. headers   of the new message
--   due                when it would be due
--   max_wait           how far a message that waits may be put off, from its first send
--   returns  the msg_id that has the key and what was done: skipped, replaced; no row while the key is free
--   writes   vtq.<queue>
--   index    _<queue>_unique
--   raises   VT003 where on_conflict is error
CREATE OR REPLACE FUNCTION vtq._take_unique(
    queue text,
    unique_key text,
    on_conflict text,
    message jsonb,
    headers jsonb,
    due timestamptz,
    max_wait interval
)
RETURNS TABLE (msg_id bigint, outcome text)
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
BEGIN
    EXECUTE format('SELECT m.msg_id FROM vtq.%I AS m WHERE m.unique_key = $1', queue) INTO msg_id USING unique_key;
    IF msg_id IS NULL THEN
        RETURN;
    END IF;
    IF on_conflict = 'error' THEN
        RAISE EXCEPTION 'unique_key "%" of queue "%" is taken by message %', unique_key, queue, msg_id USING ERRCODE = 'VT003';
    END IF;
    outcome := 'skipped';
    RETURN NEXT;
END;
$$;

COMMENT ON FUNCTION vtq._take_unique(text, text, text, jsonb, jsonb, timestamptz, interval)
    IS 'Internal: what becomes of a send whose unique key may be taken.';

-- vtq.send_batch_report: as vtq.send_batch, and says of each message whether it is new.
--   queue .. exclusive_keys   as in vtq.send_batch
--   returns  one row for each message, in their order: place, 1 for the first · msg_id and outcome as in vtq.send_report
--   writes   vtq.<queue>, vtq.<queue>_archive
--   raises   VT001, VT004, 22023, VT007 naming the message by its place; nothing is sent then
-- Two transactions that send the same keys in opposite orders wait for each other, and one gets 40P01: send the keys
-- of a batch in one order everywhere.
CREATE OR REPLACE FUNCTION vtq.send_batch_report(
    queue text,
    messages jsonb[],
    headers jsonb[] DEFAULT NULL,
    delay interval DEFAULT NULL,
    visible_at timestamptz DEFAULT NULL,
    priority integer DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    policy jsonb DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL,
    retry_until timestamptz DEFAULT NULL,
    unique_keys text[] DEFAULT NULL,
    unique_until text DEFAULT NULL,
    unique_for interval DEFAULT NULL,
    on_conflict text DEFAULT NULL,
    max_wait interval DEFAULT NULL,
    group_keys text[] DEFAULT NULL,
    exclusive_keys text[] DEFAULT NULL
)
RETURNS TABLE (place bigint, msg_id bigint, outcome text)
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    RETURN QUERY
    SELECT s.place, s.msg_id, s.outcome
    FROM vtq._send_keyed(
        queue, messages, headers, delay, visible_at, priority, max_attempts, policy, expires_at, retry_until, unique_keys,
        unique_until, unique_for, on_conflict, max_wait, group_keys, exclusive_keys
    ) AS s
    ORDER BY s.place;
END;
$$;

COMMENT ON FUNCTION vtq.send_batch_report(
    text, jsonb[], jsonb[], interval, timestamptz, integer, integer, jsonb, timestamptz, timestamptz, text[], text, interval,
    text, interval, text[], text[]
)
    IS 'As vtq.send_batch, and says of each message whether it is new: sent, superseded, skipped or replaced.';

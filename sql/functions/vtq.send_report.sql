-- vtq.send_report: as vtq.send, and says whether the message is new.
--   queue .. exclusive_key   as in vtq.send
--   returns  msg_id · outcome: sent · superseded: sent, and an older one that was waiting for a retry left for the
--            archive · skipped: not sent, msg_id has the key · replaced: msg_id was waiting and has the new payload
--   writes   vtq.<queue>, vtq.<queue>_archive
--   raises   VT001, VT004, VT007, 22023
CREATE OR REPLACE FUNCTION vtq.send_report(
    queue text,
    message jsonb,
    headers jsonb DEFAULT NULL,
    delay interval DEFAULT NULL,
    visible_at timestamptz DEFAULT NULL,
    priority integer DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    policy jsonb DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL,
    retry_until timestamptz DEFAULT NULL,
    unique_key text DEFAULT NULL,
    unique_until text DEFAULT NULL,
    unique_for interval DEFAULT NULL,
    on_conflict text DEFAULT NULL,
    max_wait interval DEFAULT NULL,
    group_key text DEFAULT NULL,
    exclusive_key text DEFAULT NULL,
    OUT msg_id bigint,
    OUT outcome text
)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    SELECT s.msg_id, s.outcome INTO msg_id, outcome
    FROM vtq._send_keyed(
        queue, ARRAY[message], ARRAY[headers], delay, visible_at, priority, max_attempts, policy, expires_at, retry_until,
        ARRAY[unique_key], unique_until, unique_for, on_conflict, max_wait, ARRAY[group_key], ARRAY[exclusive_key]
    ) AS s;
END;
$$;

COMMENT ON FUNCTION vtq.send_report(
    text, jsonb, jsonb, interval, timestamptz, integer, integer, jsonb, timestamptz, timestamptz, text, text, interval, text,
    interval, text, text
)
    IS 'As vtq.send, and says whether the message is new: sent, superseded, skipped or replaced.';

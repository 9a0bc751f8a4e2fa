-- vtq._last_try: when a message runs once more before its deadline, where the backoff would end past it.
--   deadline      its expires_at or retry_until, whichever is first
--   enqueued_at   of the message
--   at            now
--   returns  an instant shortly before the deadline; null when it is too late for that
-- A margin, a twentieth of the time that the message was given and at most 30 s, lies before the deadline: readers
-- that are behind must still reach it. The tries of messages that share a deadline are spread over a second margin;
-- within that no other is granted, so that the last try is one.
CREATE OR REPLACE FUNCTION vtq._last_try(deadline timestamptz, enqueued_at timestamptz, at timestamptz)
RETURNS timestamptz
LANGUAGE sql
VOLATILE
SET search_path = pg_catalog
AS $$
    SELECT CASE WHEN at < deadline - 2 * m.margin THEN greatest(at, deadline - m.margin * (1 + random())) END
    FROM (SELECT least(interval '30 s', greatest(interval '0', (deadline - enqueued_at) / 20)) AS margin) AS m
$$;

COMMENT ON FUNCTION vtq._last_try(timestamptz, timestamptz, timestamptz)
    IS 'Internal: when a message runs once more before its deadline, where the backoff would end past it.';

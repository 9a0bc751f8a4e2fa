-- vtq.schedule_list: the schedules, in order of name.
--   returns  what each says and how far it has come. state: active · paused · failing: see error · new: no worker has
--            looked at it yet · ended: no tick will come. next_at: null when it is new or ended
--   index    none: it answers the whole table
CREATE OR REPLACE FUNCTION vtq.schedule_list()
RETURNS TABLE (
    name text,
    state text,
    cron text,
    timezone text,
    queue text,
    next_at timestamptz,
    last_tick_at timestamptz,
    last_sent_at timestamptz,
    last_msg_id bigint,
    sent_ct bigint,
    skipped_ct bigint,
    missed text,
    missed_cap integer,
    grace interval,
    paused_until timestamptz,
    pause_reason text,
    error text,
    error_at timestamptz,
    message jsonb,
    headers jsonb,
    delay interval,
    priority integer,
    max_attempts integer,
    policy jsonb,
    expires_in interval
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    at timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
    SELECT s.name,
        CASE
            WHEN s.paused_until > at THEN 'paused'
            WHEN s.error IS NOT NULL THEN 'failing'
            WHEN s.next_at = '-infinity' THEN 'new'
            WHEN s.next_at = 'infinity' THEN 'ended'
            ELSE 'active'
        END,
        s.cron, s.timezone, s.queue, CASE WHEN isfinite(s.next_at) THEN s.next_at END,
        s.last_tick_at, s.last_sent_at, s.last_msg_id, s.sent_ct, s.skipped_ct, s.missed, s.missed_cap, s.grace,
        CASE WHEN s.paused_until > at THEN s.paused_until END,
        CASE WHEN s.paused_until > at THEN s.pause_reason END,
        s.error, s.error_at,
        s.message, s.headers, s.delay, s.priority, s.max_attempts, s.policy, s.expires_in
    FROM vtq._schedule AS s
    ORDER BY s.name COLLATE "C";
END;
$$;

COMMENT ON FUNCTION vtq.schedule_list() IS 'The schedules: what each says, when its next tick is, what it has sent and skipped, and why it cannot send.';

-- vtq._state: the state of a live message, derived and never stored. The one place that says what a state is.
--   ready_at .. unstarted_ct   the columns of the message
--   max_attempts               the message's own limit, or its queue's
--   expires_at                 the column of the message
--   at                         the instant to judge at
--   returns  ready · in_flight · delayed · retrying · waiting, for its turn in a lane · exhausted · expired
-- A delivery that lapsed before its run had started is no attempt. But until a run tells how it ended, it is held
-- against the message beside its attempts, and five of them exhaust it in any case: a crash loop must end, and a
-- message that kills its worker must not start more often than it has attempts.
-- A plain SQL expression without SET, so that the planner folds it into the statement that uses it.
CREATE OR REPLACE FUNCTION vtq._state(
    ready_at timestamptz,
    vt timestamptz,
    read_ct integer,
    refunded_ct integer,
    started_read_ct integer,
    unstarted_ct smallint,
    max_attempts integer,
    expires_at timestamptz,
    at timestamptz
)
RETURNS text
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN ready_at = 'infinity' THEN 'waiting'
        WHEN ready_at > at AND read_ct = refunded_ct THEN 'delayed'
        WHEN ready_at > at THEN 'retrying'
        WHEN vt > at THEN 'in_flight'
        -- The fence cannot rise past the largest integer: such a message has no delivery left.
        WHEN read_ct = 2147483647 THEN 'exhausted'
        WHEN read_ct - refunded_ct + unstarted_ct >= max_attempts THEN 'exhausted'
        WHEN vt <> ready_at AND started_read_ct < read_ct AND unstarted_ct >= 4 THEN 'exhausted'
        WHEN expires_at <= at THEN 'expired'
        ELSE 'ready'
    END
$$;

COMMENT ON FUNCTION vtq._state(
    timestamptz, timestamptz, integer, integer, integer, smallint, integer, timestamptz, timestamptz
) IS 'The state of a live message: ready, in_flight, delayed, retrying, waiting, exhausted or expired.';

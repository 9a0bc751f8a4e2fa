-- vtq._why: one sentence on why a live message does not run now.
--   setting            its queue's row of the catalogue
--   state .. unstarted_ct   of the message
--   at                 the instant to judge at
CREATE OR REPLACE FUNCTION vtq._why(
    setting vtq._queue,
    state text,
    ready_at timestamptz,
    vt timestamptz,
    expires_at timestamptz,
    read_ct integer,
    unstarted_ct smallint,
    at timestamptz
)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = pg_catalog
AS $$
    SELECT CASE
        WHEN state = 'delayed' THEN format('it is not due before %s, in %s', vtq._iso(ready_at), ready_at - at)
        WHEN state = 'retrying' THEN format(
            'its last run failed, and the next is due at %s, in %s', vtq._iso(ready_at), ready_at - at
        )
        WHEN state = 'in_flight' THEN format(
            'somebody holds it; unless the lease is lengthened it is visible again at %s, in %s', vtq._iso(vt), vt - at
        )
        WHEN state = 'exhausted' AND vt <> ready_at THEN
            'its last delivery left no outcome and no attempt is left; the next sweep moves it to the dead letters'
        WHEN state = 'exhausted' THEN 'no attempt is left; the next sweep moves it to the dead letters'
        WHEN state = 'expired' THEN format(
            'it was not to be started after %s; the next sweep moves it to the dead letters', vtq._iso(expires_at)
        )
        WHEN (setting).paused_until > at THEN 'its queue is paused' || coalesce(': ' || (setting).pause_reason, '')
        WHEN read_ct > 0 AND vt <> ready_at THEN 'its last delivery lapsed without an outcome; the next read hands it out'
        ELSE 'it is ready; the next read that reaches it hands it out'
    END
$$;

COMMENT ON FUNCTION vtq._why(vtq._queue, text, timestamptz, timestamptz, timestamptz, integer, smallint, timestamptz)
    IS 'Internal: one sentence on why a live message does not run now.';

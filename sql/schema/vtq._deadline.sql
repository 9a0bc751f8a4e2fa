-- vtq._deadline: the instant after which a live message is not started any more; null: none.
--   ready_at .. retry_until   the columns of the message
-- retry_until holds from the second run on: the first has been promised. A delivery that lapsed before its run had
-- started was no run.
-- A plain SQL expression without SET, so that the planner folds it into what uses it.
CREATE OR REPLACE FUNCTION vtq._deadline(
    ready_at timestamptz,
    vt timestamptz,
    read_ct integer,
    refunded_ct integer,
    started_read_ct integer,
    expires_at timestamptz,
    retry_until timestamptz
)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN retry_until IS NULL THEN expires_at
        WHEN read_ct - refunded_ct - (vt <> ready_at AND started_read_ct < read_ct)::integer > 0
            THEN least(expires_at, retry_until)
        ELSE expires_at
    END
$$;

COMMENT ON FUNCTION vtq._deadline(timestamptz, timestamptz, integer, integer, integer, timestamptz, timestamptz)
    IS 'Internal: the instant after which a live message is not started any more.';

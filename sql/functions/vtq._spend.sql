-- vtq._spend: takes tokens out of a queue's bucket for what a read has handed out.
--   queue    queue name
--   setting  its row of the catalogue
--   taken    how many messages; 0 changes nothing
--   at       now
--   writes   vtq._rate. The caller holds the lock of vtq._allow
CREATE OR REPLACE FUNCTION vtq._spend(queue text, setting vtq._queue, taken integer, at timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    length interval := setting.rate_interval / setting.rate_limit * taken;
BEGIN
    IF setting.rate_limit IS NULL OR taken = 0 THEN
        RETURN;
    END IF;
    INSERT INTO vtq._rate AS r (queue, lane, used_until)
    VALUES (_spend.queue, '', at + length)
    ON CONFLICT (queue, lane) DO UPDATE SET used_until = greatest(r.used_until, _spend.at) + length;
END;
$$;

COMMENT ON FUNCTION vtq._spend(text, vtq._queue, integer, timestamptz)
    IS 'Internal: takes tokens out of a queue''s bucket for what a read has handed out.';

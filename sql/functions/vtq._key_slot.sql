-- vtq._key_slot: takes a token of a lane's bucket, and says when it is good.
--   queue    queue name
--   lane     the lane
--   at       now
--   returns  at, or the later instant from which the rate allows one more
--   writes   vtq._rate, where the queue has a key_rate
CREATE OR REPLACE FUNCTION vtq._key_slot(queue text, lane text, at timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    setting record;
    used timestamptz;
BEGIN
    SELECT q.key_rate_limit AS ct, q.key_rate_interval AS length INTO setting
    FROM vtq._queue AS q WHERE q.queue = _key_slot.queue;
    IF setting.ct IS NULL THEN
        RETURN at;
    END IF;
    INSERT INTO vtq._rate AS r (queue, lane, used_until)
    VALUES (_key_slot.queue, _key_slot.lane, at + setting.length / setting.ct)
    ON CONFLICT (queue, lane) DO UPDATE
    SET used_until = greatest(r.used_until, _key_slot.at) + setting.length / setting.ct
    RETURNING r.used_until INTO used;
    RETURN greatest(at, used - setting.length);
END;
$$;

COMMENT ON FUNCTION vtq._key_slot(text, text, timestamptz) IS 'Internal: takes a token of a lane''s bucket, and says when it is good.';

-- vtq.defer: gives a delivery back for later. It does not count as an attempt.
--   queue, msg_id, read_ct   the lease
--   delay        due again after this long, 0 to 36500 days
--   reason       kept with the delivery in vtq.<queue>_attempts
--   holder       a worker's number: the lease must be its own. A crash of the server may undo a claim that a
--                worker has begun to run; whoever reads next gets the same read_ct, and only this tells them
--                apart. Null: not looked at
--   returns  outcome 'deferred' with vt · 'dead' when the message would be due after its expires_at, or has run
--            before and would be due after its retry_until · 'superseded' as in vtq.fail ·
--            'stale' when the lease is not held. The same call again gets the same answer
--   writes   vtq.<queue>, vtq.<queue>_attempts, vtq.<queue>_dlq
--   index    primary key
--   raises   VT001, 22023, VT004
CREATE OR REPLACE FUNCTION vtq.defer(
    queue text,
    msg_id bigint,
    read_ct integer,
    delay interval,
    reason text DEFAULT NULL,
    holder integer DEFAULT NULL,
    OUT outcome text,
    OUT vt timestamptz
)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    lease record;
    wait interval := vtq._check_length('delay', delay, interval '0', interval '36500 days');
BEGIN
    IF delay IS NULL THEN
        RAISE EXCEPTION 'delay is null: say how long to defer' USING ERRCODE = '22023';
    END IF;
    SELECT l.* INTO lease FROM vtq._lock_lease(queue, msg_id, read_ct, holder) AS l;
    IF NOT FOUND THEN
        SELECT s.outcome, s.vt INTO outcome, vt FROM vtq._settled_before(queue, msg_id, read_ct, 'defer') AS s;
        RETURN;
    END IF;
    vt := clock_timestamp() + wait;
    IF vt >= lease.expires_at OR (lease.attempt > 1 AND vt >= lease.retry_until) THEN
        vt := NULL;
        PERFORM vtq._record(queue, msg_id, read_ct, lease.attempt, lease.started, 'expired', NULL, reason, NULL);
        PERFORM vtq._bury(queue, ARRAY[msg_id], ARRAY['expired'], 'worker');
        outcome := 'dead';
        RETURN;
    END IF;
    PERFORM vtq._record(queue, msg_id, read_ct, lease.attempt, lease.started, 'deferred', vt, reason, NULL);
    outcome := coalesce(vtq._requeue(queue, msg_id, vt, true), 'deferred');
    vt := CASE outcome WHEN 'deferred' THEN vt END;
END;
$$;

COMMENT ON FUNCTION vtq.defer(text, bigint, integer, interval, text, integer)
    IS 'Gives a delivery back for later without spending an attempt: SELECT * FROM vtq.defer(''orders'', 7, 1, ''10 min'').';

-- vtq.fail: settles a delivery as failed: the message is due again after a backoff, or dead.
--   queue, msg_id, read_ct   the lease
--   error        {"class", "code", "message", "detail", "worker"}, any of them, or a plain string
--   retry_after  the wait before the next run, 0 to 36500 days; never shortened by jitter.
--                Default: vtq.backoff of the message's policy, else the queue's
--   holder       a worker's number: the lease must be its own. A crash of the server may undo a claim that a
--                worker has begun to run; whoever reads next gets the same read_ct, and only this tells them
--                apart. Null: not looked at
--   returns  outcome 'retry' with vt, when it is due again · 'dead' when no run is left: the budget is spent, or
--            the next run would come after expires_at or retry_until; a backoff with "on_deadline": "clamp" then has
--            one last try shortly before · 'superseded' when a newer copy of its unique_key, with unique_until started,
--            goes before it: it is in the archive · 'stale' when the lease is not held; nothing has changed.
--            The same call again gets the same answer and changes nothing
--   writes   vtq.<queue>, vtq.<queue>_attempts, vtq.<queue>_dlq
--   index    primary key
--   raises   VT001, 22023; VT004 when the message should die and vtq.<queue>_dlq is missing
CREATE OR REPLACE FUNCTION vtq.fail(
    queue text,
    msg_id bigint,
    read_ct integer,
    error jsonb DEFAULT NULL,
    retry_after interval DEFAULT NULL,
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
    wait interval := vtq._check_length('retry_after', retry_after, interval '0', interval '36500 days');
    death text;
    deadline timestamptz;
BEGIN
    SELECT l.* INTO lease FROM vtq._lock_lease(queue, msg_id, read_ct, holder) AS l;
    IF NOT FOUND THEN
        SELECT s.outcome, s.vt INTO outcome, vt FROM vtq._settled_before(queue, msg_id, read_ct, 'fail') AS s;
        RETURN;
    END IF;

    vt := clock_timestamp() + coalesce(wait, vtq.backoff(lease.backoff, greatest(lease.attempt, 1)));
    deadline := least(lease.expires_at, lease.retry_until);
    -- A wait that was asked for is never shortened.
    IF vt >= deadline AND wait IS NULL AND lease.backoff ->> 'on_deadline' = 'clamp' THEN
        vt := coalesce(vtq._last_try(deadline, lease.enqueued_at, clock_timestamp()), vt);
    END IF;
    death := CASE
        WHEN lease.attempt >= lease.max_attempts THEN 'attempts_exhausted'
        WHEN vt >= deadline THEN 'expired'
    END;
    vt := CASE WHEN death IS NULL THEN vt END;
    PERFORM vtq._record(
        queue, msg_id, read_ct, lease.attempt, lease.started, (vtq._clean_error(error)).outcome, vt, NULL, error
    );
    IF death IS NULL THEN
        outcome := coalesce(vtq._requeue(queue, msg_id, vt, false), 'retry');
        vt := CASE outcome WHEN 'retry' THEN vt END;
    ELSE
        PERFORM vtq._bury(queue, ARRAY[msg_id], ARRAY[death], 'worker');
        outcome := 'dead';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq.fail(text, bigint, integer, jsonb, interval, integer)
    IS 'Settles a delivery as failed: retry after the backoff, or dead: SELECT * FROM vtq.fail(''orders'', 7, 1, ''"card declined"'').';

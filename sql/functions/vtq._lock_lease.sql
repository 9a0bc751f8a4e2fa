-- vtq._lock_lease: locks the message of a lease and says what its holder needs to settle it.
--   queue, msg_id, read_ct, holder   the lease; holder as in vtq.ack
--   returns  one row while the lease is held, none when it is stale
--            max_attempts and backoff are the message's own where it has them, else the queue's
--   index    primary key
--   raises   VT001; 22023 for a null id or read_ct
CREATE OR REPLACE FUNCTION vtq._lock_lease(queue text, msg_id bigint, read_ct integer, holder integer)
RETURNS TABLE (
    attempt integer,
    max_attempts integer,
    backoff jsonb,
    expires_at timestamptz,
    retry_until timestamptz,
    enqueued_at timestamptz,
    started timestamptz
)
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    setting record;
BEGIN
    SELECT q.max_attempts, q.backoff INTO setting FROM vtq._queue AS q WHERE q.queue = _lock_lease.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    IF msg_id IS NULL OR read_ct IS NULL THEN
        RAISE EXCEPTION 'a lease is a msg_id and the read_ct that came with it; got % and %',
            coalesce(msg_id::text, 'null'), coalesce(read_ct::text, 'null') USING ERRCODE = '22023';
    END IF;
    -- vt = ready_at: nobody holds a lease, this delivery was settled before.
    RETURN QUERY EXECUTE format($sql$
        SELECT m.read_ct - m.refunded_ct, coalesce(m.max_attempts::integer, $3),
            vtq._own_backoff($4, m.policy), m.expires_at, m.retry_until, m.enqueued_at, m.last_read_at
        FROM vtq.%1$I AS m
        WHERE m.msg_id = $1 AND m.read_ct = $2 AND m.read_ct > 0 AND m.vt <> m.ready_at
            AND (m.holder = $5 OR $5 IS NULL)
        FOR UPDATE
    $sql$, queue)
    USING msg_id, read_ct, setting.max_attempts::integer, setting.backoff, holder;
END;
$$;

COMMENT ON FUNCTION vtq._lock_lease(text, bigint, integer, integer)
    IS 'Internal: locks the message of a lease and says what its holder needs to settle it.';

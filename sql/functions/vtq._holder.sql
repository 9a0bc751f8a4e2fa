-- vtq._holder: who holds a message.
--   holder       worker_no in vtq._worker; null: a reader that is no worker
--   since, until the lease
--   at           the instant to judge at
--   returns  {"worker_id", "host", "pid", "heartbeat_age_s", "since", "until"}, without what is not known
CREATE OR REPLACE FUNCTION vtq._holder(holder integer, since timestamptz, until timestamptz, at timestamptz)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = pg_catalog
AS $$
    SELECT jsonb_build_object(
        'kind', CASE
            WHEN holder IS NULL THEN 'a reader that is no worker'
            WHEN w.worker_id IS NULL THEN 'a worker that has left'
            ELSE 'a worker'
        END,
        'worker_id', w.worker_id,
        'host', w.host,
        'pid', w.pid,
        'heartbeat_age_s', round(extract(epoch FROM at - w.heartbeat_at)::numeric, 3),
        'since', vtq._iso(since),
        'until', vtq._iso(until)
    )
    FROM (VALUES (holder)) AS h (worker_no)
    LEFT JOIN vtq._worker AS w ON w.worker_no = h.worker_no
$$;

COMMENT ON FUNCTION vtq._holder(integer, timestamptz, timestamptz, timestamptz) IS 'Internal: who holds a message.';

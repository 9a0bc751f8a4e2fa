-- vtq.workers: the worker processes, the one that has run longest first.
--   returns  one row per process. heartbeat_age: since its last sign of life · last_claim_age: since its fetch loop
--            last asked for messages, null: never · in_flight: messages it held at its last sign of life ·
--            wake_up: how it learns of work when idle: listening · deaf (meant to listen and hears nothing: it polls) ·
--            polling · null: not known yet.
--            A worker that stopped cleanly has no row; one that was killed has one for a day
CREATE OR REPLACE FUNCTION vtq.workers()
RETURNS TABLE (
    worker_id text,
    host text,
    pid integer,
    version text,
    queues text[],
    started_at timestamptz,
    heartbeat_at timestamptz,
    heartbeat_age interval,
    last_claim_at timestamptz,
    last_claim_age interval,
    in_flight integer,
    wake_up text
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    at timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
    SELECT w.worker_id, w.host, w.pid, w.version, w.queues, w.started_at, w.heartbeat_at, at - w.heartbeat_at,
        w.last_claim_at, at - w.last_claim_at, w.in_flight, w.wake_up
    FROM vtq._worker AS w
    ORDER BY w.started_at, w.worker_id COLLATE "C";
END;
$$;

COMMENT ON FUNCTION vtq.workers() IS 'The worker processes: who they are, what they serve, and their last signs of life and of work.';

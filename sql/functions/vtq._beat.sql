-- vtq._beat: a worker's sign of life.
--   worker_id .. queues   who it is and what it serves
--   last_claim            how long ago its fetch loop last asked for messages; null: never
--   in_flight             how many messages it holds
--   wake_up               listening, deaf or polling; null: not known yet
--   returns  what its queues are set to, so that a change reaches it; a queue that is gone is missing. With each the
--            worker's number, how many live workers serve the queue, and whether it has a max_in_flight
--   writes   vtq._worker. Rows that were silent for a day are removed
CREATE OR REPLACE FUNCTION vtq._beat(
    worker_id text,
    host text,
    pid integer,
    version text,
    queues text[],
    last_claim interval,
    in_flight integer,
    wake_up text DEFAULT NULL
)
RETURNS TABLE (
    queue text,
    visibility_timeout interval,
    priorities smallint[],
    worker_no integer,
    worker_ct bigint,
    is_capped boolean
)
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    at timestamptz := clock_timestamp();
    number integer;
BEGIN
    INSERT INTO vtq._worker AS w (worker_id, host, pid, version, queues, last_claim_at, in_flight, wake_up)
    VALUES (
        _beat.worker_id, _beat.host, _beat.pid, _beat.version, _beat.queues, at - last_claim, _beat.in_flight,
        _beat.wake_up
    )
    ON CONFLICT (worker_id) DO UPDATE
    SET heartbeat_at = at, last_claim_at = excluded.last_claim_at, in_flight = excluded.in_flight,
        wake_up = excluded.wake_up
    RETURNING w.worker_no INTO number;
    DELETE FROM vtq._worker AS w WHERE w.heartbeat_at < at - interval '1 day';
    RETURN QUERY
    SELECT q.queue, q.visibility_timeout, q.priorities, number, (
        SELECT count(*) FROM vtq._worker AS w
        WHERE q.queue = ANY (w.queues) AND w.heartbeat_at > at - interval '2 min'
    ), q.max_in_flight IS NOT NULL
    FROM vtq._queue AS q
    WHERE q.queue = ANY (_beat.queues);
END;
$$;

COMMENT ON FUNCTION vtq._beat(text, text, integer, text, text[], interval, integer, text)
    IS 'Internal: a worker''s sign of life; answers what its queues are set to.';

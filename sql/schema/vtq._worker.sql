-- vtq._worker: one row per worker process.
--   heartbeat_at says that the process lives, last_claim_at that it still fetches: two different things.
CREATE TABLE vtq._worker (
    worker_id text NOT NULL,
    worker_no integer GENERATED ALWAYS AS IDENTITY,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    queues text[] NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_claim_at timestamptz,
    in_flight integer NOT NULL DEFAULT 0,
    wake_up text,
    CONSTRAINT _worker_pk PRIMARY KEY (worker_id),
    CONSTRAINT wake_up_known CHECK (wake_up IN ('listening', 'deaf', 'polling'))
);

COMMENT ON TABLE vtq._worker IS 'One row per worker process; removed when it stops cleanly.';
COMMENT ON COLUMN vtq._worker.worker_id IS 'Host, pid and a random part: a restarted process is a new worker.';
COMMENT ON COLUMN vtq._worker.worker_no IS 'What stands in the column holder of the messages that it holds.';
COMMENT ON COLUMN vtq._worker.heartbeat_at IS 'Last sign of life of the process.';
COMMENT ON COLUMN vtq._worker.wake_up IS 'How it learns of work when idle: listening, deaf (meant to listen, hears nothing, polls), polling; null: not known yet.';
COMMENT ON COLUMN vtq._worker.last_claim_at IS 'Last time the fetch loop asked for messages: alive and working are two things.';

-- vtq._sleeper: the workers that wait for a NOTIFY, one row per worker and queue.
--   Only while a row stands here does a send notify. Unlogged: after a crash every worker announces itself anew.
CREATE UNLOGGED TABLE vtq._sleeper (
    queue text NOT NULL,
    worker_id text NOT NULL,
    until timestamptz NOT NULL,
    CONSTRAINT _sleeper_pk PRIMARY KEY (queue, worker_id)
);

COMMENT ON TABLE vtq._sleeper IS 'Workers that wait for a NOTIFY. A send notifies only while a row for its queue stands here.';
COMMENT ON COLUMN vtq._sleeper.until IS 'The announcement lapses at this instant, should its worker die.';

-- vtq._rate: how far ahead of the clock the token buckets are used up.
--   One row per queue that has a rate, with lane '', and per lane in a queue that has a key_rate. Full buckets need none.
--   UNLOGGED: after a crash all buckets are full.
CREATE UNLOGGED TABLE vtq._rate (
    queue text NOT NULL,
    lane text NOT NULL,
    used_until timestamptz NOT NULL,
    CONSTRAINT _rate_pk PRIMARY KEY (queue, lane)
)
WITH (fillfactor = 50);

COMMENT ON TABLE vtq._rate IS 'How far ahead of the clock the token buckets of rate limits are used up.';
COMMENT ON COLUMN vtq._rate.used_until IS 'A bucket is full when this is past, and empty when it is a whole interval ahead.';

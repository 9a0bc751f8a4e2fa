-- vtq._taken: unique keys whose message succeeded, while that still means something for others.
--   Written by the ack of a message that was sent with unique_for, or that leaves older copies behind which run still;
--   vtq.maintain removes what is past. An ack adds rows and never waits for another's: two of them, each with several
--   keys, would else wait for each other.
CREATE TABLE vtq._taken (
    queue text NOT NULL,
    unique_key text NOT NULL,
    msg_id bigint NOT NULL,
    until timestamptz NOT NULL,
    CONSTRAINT _taken_pk PRIMARY KEY (queue, unique_key, msg_id)
);

CREATE INDEX _taken_until ON vtq._taken (queue, until);

COMMENT ON TABLE vtq._taken IS 'Unique keys whose message succeeded, while that still means something for others.';
COMMENT ON COLUMN vtq._taken.msg_id IS 'The message that succeeded. Older copies that run still do not run again.';
COMMENT ON COLUMN vtq._taken.until IS 'The key is taken up to this instant; a send before it is answered with msg_id.';

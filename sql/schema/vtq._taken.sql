-- vtq._taken: unique keys that stay taken for a while after their message succeeded.
--   Written by the ack of a message that was sent with unique_for; vtq.maintain removes what is past.
CREATE TABLE vtq._taken (
    queue text NOT NULL,
    unique_key text NOT NULL,
    msg_id bigint NOT NULL,
    until timestamptz NOT NULL,
    CONSTRAINT _taken_pk PRIMARY KEY (queue, unique_key)
);

CREATE INDEX _taken_until ON vtq._taken (queue, until);

COMMENT ON TABLE vtq._taken IS 'Unique keys that stay taken for a while after their message succeeded.';
COMMENT ON COLUMN vtq._taken.msg_id IS 'The message that succeeded; a send within the time is answered with it.';
COMMENT ON COLUMN vtq._taken.until IS 'The key is free from this instant on.';

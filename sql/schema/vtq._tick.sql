-- vtq._tick: one row per tick that was sent, written by the transaction that sends.
--   The key is what makes a tick be sent once, whatever workers, clocks and crashes do. Rows are kept for a day.
CREATE TABLE vtq._tick (
    name text NOT NULL,
    tick_at timestamptz NOT NULL,
    queue text NOT NULL,
    msg_id bigint NOT NULL,
    sent_at timestamptz NOT NULL,
    CONSTRAINT _tick_pk PRIMARY KEY (name, tick_at)
);

COMMENT ON TABLE vtq._tick IS 'The ticks that were sent in the last day. A tick that stands here is not sent again.';

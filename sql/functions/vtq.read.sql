-- vtq.read: leases visible messages and hides them for the visibility timeout.
--   queue               queue name
--   visibility_timeout  how long to hide them, 1 ms to 12 hours; default the queue's
--   qty                 how many at the most, 1 to 10000
--   after_ready_at, after_msg_id
--                       floors: start behind this place in the line. One element per priority level, in the
--                       order of the queue's levels; null: from the front. One with a msg_id may be passed over where
--                       other workers have been further; one without holds. Only a worker's business
--   holder              a worker's number in vtq._worker. A worker says with its heartbeat which runs have started: a
--                       delivery that lapses before does not count as an attempt. Null: the read is the start
--   returns  up to qty rows in hand-out order: by level, then whichever has been ready longest.
--            (msg_id, read_ct) is the lease; attempt is 1 on the first run; timeout is the limit for this run;
--            is_suspect says that the delivery before left no outcome
--   writes   vtq.<queue> (HOT, touches no index); vtq.<queue>_attempts for a delivery that left no outcome
--   index    _<queue>_line
--   raises   VT001, VT004, 22023
-- The work is done by the queue's own read; see vtq._create_read.
CREATE OR REPLACE FUNCTION vtq.read(
    queue text,
    visibility_timeout interval DEFAULT NULL,
    qty integer DEFAULT 1,
    after_ready_at timestamptz[] DEFAULT NULL,
    after_msg_id bigint[] DEFAULT NULL,
    holder integer DEFAULT NULL
)
RETURNS TABLE (
    msg_id bigint,
    read_ct integer,
    attempt integer,
    ready_at timestamptz,
    enqueued_at timestamptz,
    last_read_at timestamptz,
    vt timestamptz,
    headers jsonb,
    message jsonb,
    priority smallint,
    timeout interval,
    is_suspect boolean
)
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    own text := vtq._own(queue, 'read');
BEGIN
    IF to_regproc(own) IS NULL THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    RETURN QUERY EXECUTE 'SELECT r.msg_id, r.read_ct, r.attempt, r.ready_at, r.enqueued_at, r.last_read_at, r.vt, r.headers, '
        'r.message, r.priority, r.timeout, r.is_suspect FROM ' || own || '($1, $2, $3, $4, $5) AS r'
    USING visibility_timeout, qty, after_ready_at, after_msg_id, holder;
END;
$$;

COMMENT ON FUNCTION vtq.read(text, interval, integer, timestamptz[], bigint[], integer)
    IS 'Leases up to qty visible messages and hides them for the visibility timeout: SELECT * FROM vtq.read(''orders'', ''30 s'', 10).';

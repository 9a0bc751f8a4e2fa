-- vtq.extend: lengthens live leases (the heartbeat).
--   queue               queue name
--   msg_ids, read_cts   the leases, paired by position
--   visibility_timeout  counted from now, 1 ms to 12 hours; default the queue's
--   started             which of the runs have started, paired with the leases; null: nothing is said of that
--   holder              a worker's number: the lease must be its own. A crash of the server may undo a claim that a
--                       worker has begun to run; whoever reads next gets the same read_ct, and only this tells them
--                       apart. Null: not looked at
--   returns  the msg_ids still held, in order of msg_id; one that is missing was overtaken, settled or cancelled
--   writes   vtq.<queue> (HOT, touches no index)
--   index    primary key
--   raises   VT001, VT004, 22023
-- The work is done by the queue's own extend; see vtq._create_extend.
CREATE OR REPLACE FUNCTION vtq.extend(
    queue text,
    msg_ids bigint[],
    read_cts integer[],
    visibility_timeout interval DEFAULT NULL,
    started boolean[] DEFAULT NULL,
    holder integer DEFAULT NULL
)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    own text := vtq._own(queue, 'extend');
BEGIN
    IF to_regproc(own) IS NULL THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    RETURN QUERY EXECUTE 'SELECT * FROM ' || own || '($1, $2, $3, $4, $5)'
    USING msg_ids, read_cts, visibility_timeout, started, holder;
END;
$$;

COMMENT ON FUNCTION vtq.extend(text, bigint[], integer[], interval, boolean[], integer)
    IS 'Lengthens live leases from now on and returns the msg_ids still held.';

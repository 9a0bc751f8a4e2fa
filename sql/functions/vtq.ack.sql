-- vtq.ack: settles messages as done: archives or deletes them, by the queue's on_ack.
--   queue               queue name
--   msg_ids, read_cts   the leases, paired by position
--   holder              a worker's number: the lease must be its own. A crash of the server may undo a claim that a
--                       worker has begun to run; whoever reads next gets the same read_ct, and only this tells them
--                       apart. Null: not looked at
--   returns  the msg_ids settled, in order of msg_id; one that is missing was stale: overtaken or settled before
--   writes   vtq.<queue>, vtq.<queue>_archive, in one statement
--   index    primary key
--   raises   VT001, VT004, 22023
-- A lease that lapsed is still good while nobody else was given the message.
-- The work is done by the queue's own ack; see vtq._create_ack.
CREATE OR REPLACE FUNCTION vtq.ack(
    queue text,
    msg_ids bigint[],
    read_cts integer[],
    holder integer DEFAULT NULL
)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    own text := vtq._own(queue, 'ack');
BEGIN
    IF to_regproc(own) IS NULL THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    RETURN QUERY EXECUTE 'SELECT * FROM ' || own || '($1, $2, $3)'
    USING msg_ids, read_cts, holder;
END;
$$;

COMMENT ON FUNCTION vtq.ack(text, bigint[], integer[], integer)
    IS 'Settles messages as done and returns the msg_ids settled; the rest were stale: vtq.ack(''orders'', ''{7}'', ''{1}'').';

-- vtq.ack: settles messages as done: archives or deletes them, by the queue's on_ack.
--   queue               queue name
--   msg_ids, read_cts   the leases, paired by position
--   holder              a worker's number: the lease must be its own. A crash of the server may undo a claim that a
--                       worker has begun to run; whoever reads next gets the same read_ct, and only this tells them
--                       apart. Null: not looked at
--   returns  the msg_ids settled, in order of msg_id; one that is missing was stale: overtaken or settled before
--   writes   vtq.<queue>, vtq.<queue>_archive, in one statement
--   index    primary key
--   raises   VT001, 22023
-- A lease that lapsed is still good while nobody else was given the message.
CREATE OR REPLACE FUNCTION vtq.ack(
    queue text,
    msg_ids bigint[],
    read_cts integer[],
    holder integer DEFAULT NULL
)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
-- Row by row through the key, in the order of the leases: locks are taken in msg_id order, whatever the statistics.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    started timestamptz := clock_timestamp();
    setting record;
BEGIN
    SELECT q.on_ack, q.archive_until INTO setting FROM vtq._queue AS q WHERE q.queue = ack.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    PERFORM vtq._check_leases(msg_ids, read_cts);
    IF setting.on_ack = 'delete' THEN
        RETURN QUERY EXECUTE format($sql$
            WITH settled AS (
                DELETE FROM vtq.%1$I AS m
                USING (SELECT l.msg_id, l.read_ct FROM unnest($1, $2) AS l (msg_id, read_ct) ORDER BY l.msg_id) AS lease
                WHERE m.msg_id = lease.msg_id AND m.read_ct = lease.read_ct AND m.read_ct > 0 AND m.vt <> m.ready_at
                    AND (m.holder = $3 OR $3 IS NULL)
                RETURNING m.msg_id
            )
            SELECT s.msg_id FROM settled AS s ORDER BY s.msg_id
        $sql$, queue)
        USING msg_ids, read_cts, holder;
        RETURN;
    END IF;

    IF setting.archive_until <= started THEN
        PERFORM vtq._archive_ahead(queue);
    END IF;
    RETURN QUERY EXECUTE format($sql$
        WITH settled AS (
            DELETE FROM vtq.%1$I AS m
            USING (SELECT l.msg_id, l.read_ct FROM unnest($1, $2) AS l (msg_id, read_ct) ORDER BY l.msg_id) AS lease
            WHERE m.msg_id = lease.msg_id AND m.read_ct = lease.read_ct AND m.read_ct > 0 AND m.vt <> m.ready_at
                AND (m.holder = $4 OR $4 IS NULL)
            RETURNING m.msg_id, m.enqueued_at, m.last_read_at, m.read_ct, m.refunded_ct, m.priority, m.unique_key,
                m.group_key, m.headers, m.message
        ),
        archived AS (
            INSERT INTO vtq.%2$I (
                msg_id, archived_at, enqueued_at, last_read_at, read_ct, refunded_ct, priority, unique_key,
                group_key, headers, message
            )
            SELECT s.msg_id, $3, s.enqueued_at, s.last_read_at, s.read_ct, s.refunded_ct, s.priority, s.unique_key,
                s.group_key, s.headers, s.message
            FROM settled AS s
        )
        SELECT s.msg_id FROM settled AS s ORDER BY s.msg_id
    $sql$, queue, queue || '_archive')
    USING msg_ids, read_cts, started, holder;
END;
$$;

COMMENT ON FUNCTION vtq.ack(text, bigint[], integer[], integer)
    IS 'Settles messages as done and returns the msg_ids settled; the rest were stale: vtq.ack(''orders'', ''{7}'', ''{1}'').';

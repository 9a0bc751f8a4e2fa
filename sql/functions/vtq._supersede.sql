-- vtq._supersede: takes a message out of its queue for the sake of a newer copy: into the archive, marked so.
--   queue    queue name
--   msg_id   the message, locked by the caller
--   newer    the msg_id of the newer copy
--   writes   vtq.<queue>, vtq.<queue>_archive, vtq.<queue>_attempts; also in a queue that keeps no archive of successes
--   index    primary keys
CREATE OR REPLACE FUNCTION vtq._supersede(queue text, msg_id bigint, newer bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    at timestamptz := clock_timestamp();
    deliveries integer;
    ended record := vtq._end_lanes(queue, ARRAY[msg_id]);
BEGIN
    IF (SELECT q.archive_until FROM vtq._queue AS q WHERE q.queue = _supersede.queue) <= at THEN
        PERFORM vtq._archive_ahead(queue);
    END IF;
    EXECUTE format($sql$
        WITH removed AS (
            DELETE FROM vtq.%1$I AS m
            WHERE m.msg_id = $1
            RETURNING m.msg_id, m.enqueued_at, m.last_read_at, m.read_ct, m.refunded_ct, m.priority, m.unique_key,
                m.group_key, m.headers, m.message
        ),
        archived AS (
            INSERT INTO vtq.%2$I (
                msg_id, archived_at, enqueued_at, last_read_at, read_ct, refunded_ct, priority, unique_key,
                group_key, headers, message, superseded_by
            )
            SELECT r.msg_id, $2, r.enqueued_at, r.last_read_at, r.read_ct, r.refunded_ct, r.priority, r.unique_key,
                r.group_key, r.headers, r.message, $3
            FROM removed AS r
        )
        SELECT r.read_ct FROM removed AS r
    $sql$, queue, queue || '_archive') INTO deliveries USING msg_id, at, newer;
    PERFORM vtq._promote(queue, ended.lanes, ended.places);
    IF deliveries > 0 THEN
        -- Whatever its last delivery was promised: there is no further run. See vtq._settled_before.
        EXECUTE format($sql$
            UPDATE vtq.%1$I AS a
            SET vt = NULL, reason = concat_ws(': ', a.reason, format('superseded by message %%s', $3::text))
            WHERE a.msg_id = $1 AND a.read_ct = $2
        $sql$, queue || '_attempts') USING msg_id, deliveries, newer;
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._supersede(text, bigint, bigint)
    IS 'Internal: takes a message out of its queue for the sake of a newer copy, into the archive.';

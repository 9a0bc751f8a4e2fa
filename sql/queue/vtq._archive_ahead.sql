-- vtq._archive_ahead: makes the archive's partitions from today on.
--   queue    queue name
--   writes   partitions vtq."_<queue>.<yyyymmdd>", today's and the seven days after; vtq._queue.archive_until
-- The one SECURITY DEFINER function of vtq: an ack may be the first to need today's partition, and the role
-- that acks does not own the tables. It takes nothing from its caller but the name of a queue that exists; pg_temp
-- last in the path, since the caller's temporary types would else come first, and their checks run as the owner
-- (https://www.postgresql.org/docs/current/sql-createfunction.html#SQL-CREATEFUNCTION-SECURITY).
-- The partition is built beside its parent and attached, which locks out neither readers nor writers of it;
-- CREATE TABLE ... PARTITION OF would (https://www.postgresql.org/docs/current/sql-altertable.html).
-- A leading "_" keeps partitions out of \dt vtq.<queue>*, and no queue's name holds a ".".
CREATE OR REPLACE FUNCTION vtq._archive_ahead(queue text)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning
SET timezone = 'UTC'
AS $$
DECLARE
    archive text := format('vtq.%I', queue || '_archive');
    today date := clock_timestamp()::date;
    day date;
    partition text;
BEGIN
    IF NOT EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = _archive_ahead.queue) THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    -- One at a time: two sessions at midnight would else collide on the name. Whoever came second finds all done.
    PERFORM pg_advisory_xact_lock(hashtextextended('vtq.archive.' || queue, 0));
    FOR day IN SELECT d::date FROM generate_series(today, today + 7, interval '1 day') AS d LOOP
        partition := format('vtq.%I', '_' || queue || '.' || to_char(day, 'YYYYMMDD'));
        CONTINUE WHEN to_regclass(partition) IS NOT NULL;
        EXECUTE format(
            'CREATE TABLE %1$s (LIKE %2$s INCLUDING ALL,'
            ' CONSTRAINT day CHECK (archived_at >= %3$L AND archived_at < %4$L));'
            'ALTER TABLE %2$s ATTACH PARTITION %1$s FOR VALUES FROM (%3$L) TO (%4$L)',
            partition, archive, day::timestamptz, (day + 1)::timestamptz
        );
    END LOOP;
    UPDATE vtq._queue AS q
    SET archive_until = (today + 8)::timestamptz
    WHERE q.queue = _archive_ahead.queue
        AND q.archive_until < (today + 8)::timestamptz;
END;
$$;

COMMENT ON FUNCTION vtq._archive_ahead(text) IS 'Internal: makes the archive''s partitions from today on.';

-- vtq._compact: gives back the space of dead rows that vacuum cannot remove.
--   queue    queue name
--   returns  'done', or why not: 'small' · 'recent' · 'many live rows' · 'busy'
--   writes   vtq.<queue>: its live rows are copied aside, the table truncated, the rows put back; vtq._queue
-- Vacuum keeps what an old snapshot may still see; TRUNCATE does not. So a transaction forgotten somewhere in the
-- cluster bloats a busy queue without bound, unless somebody truncates. Such a transaction, should it read the queue
-- afterwards, finds it empty (https://www.postgresql.org/docs/current/mvcc-caveats.html); a backup that has begun on
-- the table holds its lock, and then this gives up.
CREATE OR REPLACE FUNCTION vtq._compact(queue text)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog
SET lock_timeout = '100ms'
AS $$
DECLARE
    live regclass := format('vtq.%I', queue)::regclass;
    -- Moving a row costs about what sending it cost; 2000 of them take some tens of milliseconds.
    most_rows CONSTANT integer := 2000;
    least_bytes CONSTANT bigint := 16 * 1024 * 1024;
    rows_found integer;
    bytes_live bigint;
BEGIN
    IF pg_relation_size(live) < least_bytes THEN
        RETURN 'small';
    END IF;
    IF EXISTS (
        SELECT FROM vtq._queue AS q
        WHERE q.queue = _compact.queue AND q.compacted_at > clock_timestamp() - interval '10 s'
    ) THEN
        RETURN 'recent';
    END IF;
    -- Counted before the lock is asked for, and again under it.
    EXECUTE format('SELECT count(*) FROM (SELECT FROM %s LIMIT %s) AS m', live, most_rows + 1) INTO rows_found;
    IF rows_found > most_rows THEN
        RETURN 'many live rows';
    END IF;
    BEGIN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', live);
    EXCEPTION WHEN lock_not_available THEN
        RETURN 'busy';
    END;
    EXECUTE format('CREATE TEMPORARY TABLE _vtq_aside ON COMMIT DROP AS SELECT * FROM %s LIMIT %s', live, most_rows + 1);
    SELECT count(*), coalesce(sum(pg_column_size(a.message)), 0) INTO rows_found, bytes_live
    FROM pg_temp._vtq_aside AS a;
    IF rows_found > most_rows OR bytes_live * 4 > pg_total_relation_size(live) THEN
        DROP TABLE pg_temp._vtq_aside;
        RETURN 'many live rows';
    END IF;
    EXECUTE format('TRUNCATE %s', live);
    EXECUTE format('INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM pg_temp._vtq_aside', live);
    DROP TABLE pg_temp._vtq_aside;
    UPDATE vtq._queue AS q
    SET compacted_at = clock_timestamp(), compaction_ct = q.compaction_ct + 1
    WHERE q.queue = _compact.queue;
    RETURN 'done';
END;
$$;

COMMENT ON FUNCTION vtq._compact(text) IS 'Internal: gives back the space of dead rows that vacuum cannot remove.';

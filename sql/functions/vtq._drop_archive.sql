-- vtq._drop_archive: drops the archive's days that are past their retention.
--   queue      queue name
--   retention  how long a settled message is kept; null: for ever
--   returns  how many partitions were dropped
--   writes   vtq.<queue>_archive
-- Dropping needs the archive to itself for an instant. If it is not free within 100 ms, the day stays until next time.
CREATE OR REPLACE FUNCTION vtq._drop_archive(queue text, retention interval)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
SET lock_timeout = '100ms'
SET timezone = 'UTC'
AS $$
DECLARE
    partition regclass;
    dropped_ct bigint := 0;
BEGIN
    FOR partition IN
        SELECT p.oid::regclass
        FROM (
            SELECT c.oid, c.relname
            FROM pg_catalog.pg_inherits AS i
            JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
            WHERE i.inhparent = to_regclass(format('vtq.%I', queue || '_archive'))
            -- Keeps the names of all other tables away from the cast below, whatever the plan.
            OFFSET 0
        ) AS p
        -- The name's last eight digits are the day; it is over when the next one begins. What somebody else has
        -- attached under another name is not ours to drop.
        WHERE CASE WHEN p.relname ~ '\.[0-9]{8}$'
            THEN right(p.relname, 8)::date + 1 <= (clock_timestamp() - retention)::timestamp END
        ORDER BY p.relname
    LOOP
        BEGIN
            EXECUTE format('DROP TABLE %s', partition);
            dropped_ct := dropped_ct + 1;
        EXCEPTION WHEN lock_not_available THEN
            RETURN dropped_ct;
        END;
    END LOOP;
    RETURN dropped_ct;
END;
$$;

COMMENT ON FUNCTION vtq._drop_archive(text, interval) IS 'Internal: drops the archive''s days that are past their retention.';

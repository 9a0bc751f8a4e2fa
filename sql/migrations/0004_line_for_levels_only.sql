-- 0004 line_for_levels_only: the line of queues that are there already becomes an index that only statements which name
-- a level can use; see vtq._create_live. New queues are built with it.
DO $$
DECLARE
    queue text;
BEGIN
    FOR queue IN SELECT q.queue FROM vtq._queue AS q ORDER BY q.queue LOOP
        EXECUTE format('DROP INDEX IF EXISTS vtq.%I', '_' || queue || '_line');
        EXECUTE format(
            'CREATE INDEX %I ON vtq.%I (priority, ready_at, msg_id) WHERE priority IS NOT NULL',
            '_' || queue || '_line', queue
        );
        EXECUTE format(
            'COMMENT ON INDEX vtq.%I IS %L', '_' || queue || '_line', 'The line: readers walk it from the front.'
        );
    END LOOP;
END;
$$;

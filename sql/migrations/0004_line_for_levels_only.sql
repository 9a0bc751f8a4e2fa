-- 0004 line_for_levels_only: the line of queues that are there already becomes an index that only statements which name
-- a level can use; see vtq._create_live. New queues are built with it. A function whose answer has grown makes room for
-- its successor. All queues are locked before any is worked on, in one order: who waits for one then waits for all.
DO $$
DECLARE
    queue text;
    queues text[] := ARRAY(
        SELECT q.queue FROM vtq._queue AS q
        WHERE to_regclass(format('vtq.%I', q.queue)) IS NOT NULL
        ORDER BY q.queue
    );
BEGIN
    FOREACH queue IN ARRAY queues LOOP
        EXECUTE format('LOCK TABLE vtq.%I IN ACCESS EXCLUSIVE MODE', queue);
    END LOOP;
    FOREACH queue IN ARRAY queues LOOP
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
DROP FUNCTION IF EXISTS vtq._beat(text, text, integer, text, text[], interval, integer, text);

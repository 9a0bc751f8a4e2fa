-- 0004 line_for_levels_only: the line of queues that are there already becomes an index that only statements which name
-- a level can use; see vtq._create_live. New queues are built with it. All queues are locked before any is worked on, in
-- one order: who waits for one then waits for all.
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

-- A function whose answer has grown cannot be replaced in place. What takes its place here, until the functions are
-- installed, may be called by whoever could call it.
DO $$
DECLARE
    beat regprocedure := to_regprocedure('vtq._beat(text, text, integer, text, text[], interval, integer, text)');
    callers text[] := ARRAY(
        SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
        FROM pg_catalog.pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS a
        WHERE p.oid = beat AND a.grantee <> p.proowner
    );
    caller text;
    keeper text;
BEGIN
    IF beat IS NULL THEN
        RETURN;
    END IF;
    SELECT p.proowner::regrole::text INTO keeper FROM pg_catalog.pg_proc AS p WHERE p.oid = beat;
    DROP FUNCTION vtq._beat(text, text, integer, text, text[], interval, integer, text);
    CREATE FUNCTION vtq._beat(
        worker_id text, host text, pid integer, version text, queues text[], last_claim interval, in_flight integer,
        wake_up text DEFAULT NULL
    )
    RETURNS TABLE (
        queue text,
        visibility_timeout interval,
        priorities smallint[],
        worker_no integer,
        worker_ct bigint,
        is_capped boolean
    )
    LANGUAGE sql
    AS 'SELECT NULL::text, NULL::interval, NULL::smallint[], NULL::integer, NULL::bigint, NULL::boolean LIMIT 0';
    EXECUTE format(
        'ALTER FUNCTION vtq._beat(text, text, integer, text, text[], interval, integer, text) OWNER TO %s', keeper
    );
    REVOKE ALL ON FUNCTION vtq._beat(text, text, integer, text, text[], interval, integer, text) FROM PUBLIC;
    FOREACH caller IN ARRAY callers LOOP
        EXECUTE format(
            'GRANT EXECUTE ON FUNCTION vtq._beat(text, text, integer, text, text[], interval, integer, text) TO %s', caller
        );
    END LOOP;
END;
$$;

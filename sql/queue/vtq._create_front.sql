-- vtq._create_front: builds the sequence by which the workers of a queue know how far its line is handed out.
--   queue    queue name, checked; without its table nothing is built
--   writes   the sequence vtq."_<queue>_front", which goes with the queue's table
-- A worker starts behind the last message that it was given itself. What the others were given meanwhile lies before
-- it, and so each of many workers would walk past what all of them take, and past rows that they have locked right now.
-- A sequence shows without waiting for a commit, and leaves no dead row behind.
-- Whoever may claim may move it: a role that has no right on it reads without it.
CREATE OR REPLACE FUNCTION vtq._create_front(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    live regclass := to_regclass(format('vtq.%I', queue));
    keeper text;
    claimer text;
BEGIN
    IF live IS NULL OR to_regclass(format('vtq.%I', '_' || queue || '_front')) IS NOT NULL THEN
        RETURN;
    END IF;
    SELECT quote_ident(pg_get_userbyid(c.relowner)) INTO keeper FROM pg_catalog.pg_class AS c WHERE c.oid = live;
    EXECUTE format('CREATE SEQUENCE vtq.%I', '_' || queue || '_front');
    -- Whoever builds it need not be who built the queue, and only the same owner's go together.
    EXECUTE format('ALTER SEQUENCE vtq.%I OWNER TO %s', '_' || queue || '_front', keeper);
    EXECUTE format('ALTER SEQUENCE vtq.%I OWNED BY vtq.%I.ready_at', '_' || queue || '_front', queue);
    EXECUTE format(
        'COMMENT ON SEQUENCE vtq.%1$I IS %2$L', '_' || queue || '_front',
        'How far the line is handed out to workers: a ready_at, in microseconds since 1970. A hint, which may be wrong.'
    );
    FOR claimer IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_catalog.pg_class AS c
        CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        WHERE c.oid = live AND a.privilege_type = 'UPDATE' AND a.grantee <> c.relowner
        ORDER BY 1
    LOOP
        EXECUTE format('GRANT USAGE, UPDATE ON SEQUENCE vtq.%I TO %s', '_' || queue || '_front', claimer);
    END LOOP;
END;
$$;

COMMENT ON FUNCTION vtq._create_front(text)
    IS 'Internal: builds the sequence in which workers tell each other how far a queue''s line is handed out.';

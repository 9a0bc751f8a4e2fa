-- vtq.metrics_all: vtq.metrics of every queue, in order of name.
--   exact    as in vtq.metrics
--   returns  one row per queue. A queue that cannot be read has nulls and says why under "error": it never hides
--            the others
CREATE OR REPLACE FUNCTION vtq.metrics_all(exact boolean DEFAULT false)
RETURNS TABLE (
    queue_name text,
    ready bigint,
    in_flight bigint,
    delayed bigint,
    retrying bigint,
    waiting bigint,
    exhausted bigint,
    expired bigint,
    dead bigint,
    oldest_ready_age interval,
    oldest_dead_age interval,
    last_error_class text,
    sent_total bigint,
    paused_until timestamptz,
    pause_reason text,
    table_bytes bigint,
    estimated boolean,
    error text
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    queue text;
BEGIN
    FOR queue IN SELECT q.queue FROM vtq._queue AS q ORDER BY q.queue COLLATE "C" LOOP
        BEGIN
            RETURN QUERY SELECT m.* FROM vtq.metrics(queue, exact) AS m;
        EXCEPTION WHEN OTHERS THEN
            RETURN QUERY SELECT queue, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
                NULL::bigint, NULL::bigint, NULL::bigint, NULL::interval, NULL::interval, NULL::text, NULL::bigint,
                NULL::timestamptz, NULL::text, NULL::bigint, NULL::boolean, SQLERRM;
        END;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION vtq.metrics_all(boolean) IS 'vtq.metrics of every queue; one that is broken says so and hides none.';

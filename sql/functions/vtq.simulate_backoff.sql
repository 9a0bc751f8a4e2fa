-- vtq.simulate_backoff: what a backoff does to many messages that all fail at the same instant, and go on failing.
--   policy    as in vtq.backoff
--   failures  how many failures in a row, 1 to 1000
--   runs      how many messages to simulate, 1 to 1000000; failures * runs at most 10000000
--   messages  how many fail together, for the peaks; default as many as runs
--   returns   one row for each failure: the wait after it (least, 1st, 50th and 99th percentile, most), the time since
--             the first failure when the message is due again (the same), and the most of `messages` that come back
--             within one second and within a tenth of a second
--   raises    22023
-- A run takes no time here: a failure follows the moment that the message is due. That is the worst case for a peak.
CREATE OR REPLACE FUNCTION vtq.simulate_backoff(
    policy jsonb,
    failures integer DEFAULT 6,
    runs integer DEFAULT 10000,
    messages bigint DEFAULT NULL
)
RETURNS TABLE (
    failure integer,
    wait_least interval,
    wait_p1 interval,
    wait_p50 interval,
    wait_p99 interval,
    wait_most interval,
    since_p1 interval,
    since_p50 interval,
    since_p99 interval,
    peak_1s bigint,
    peak_100ms bigint
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog
SET jit = off
AS $$
#variable_conflict use_variable
BEGIN
    IF failures IS NULL OR failures NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'failures % is not allowed: it must be from 1 to 1000', coalesce(failures::text, 'null')
            USING ERRCODE = '22023';
    END IF;
    IF runs IS NULL OR runs NOT BETWEEN 1 AND 1000000 THEN
        RAISE EXCEPTION 'runs % is not allowed: it must be from 1 to 1000000', coalesce(runs::text, 'null')
            USING ERRCODE = '22023';
    END IF;
    IF failures::bigint * runs > 10000000 THEN
        RAISE EXCEPTION 'failures % and runs % are not allowed together: their product must be at most 10000000', failures, runs
            USING ERRCODE = '22023';
    END IF;
    IF messages NOT BETWEEN 1 AND 1000000000 THEN
        RAISE EXCEPTION 'messages % is not allowed: it must be from 1 to 1000000000', messages USING ERRCODE = '22023';
    END IF;
    RETURN QUERY
    WITH waited AS MATERIALIZED (
        SELECT n.n, f.f, extract(epoch FROM vtq.backoff(policy, f.f))::double precision AS wait
        FROM generate_series(1, failures) AS f (f)
        CROSS JOIN generate_series(1, runs) AS n (n)
    ),
    run AS MATERIALIZED (
        SELECT w.f, w.wait, sum(w.wait) OVER (PARTITION BY w.n ORDER BY w.f) AS since FROM waited AS w
    ),
    spread AS (
        SELECT r.f, min(r.wait) AS least, max(r.wait) AS most,
            percentile_cont(ARRAY[0.01, 0.5, 0.99]) WITHIN GROUP (ORDER BY r.wait) AS waits,
            percentile_cont(ARRAY[0.01, 0.5, 0.99]) WITHIN GROUP (ORDER BY r.since) AS sinces
        FROM run AS r
        GROUP BY r.f
    ),
    peak AS (
        SELECT b.f, b.size, max(b.ct) AS ct
        FROM (
            SELECT r.f, s.size, floor(r.since / s.size) AS place, count(*) AS ct
            FROM run AS r CROSS JOIN (VALUES (1.0), (0.1)) AS s (size)
            GROUP BY r.f, s.size, place
        ) AS b
        GROUP BY b.f, b.size
    )
    SELECT s.f, make_interval(secs => s.least), make_interval(secs => s.waits[1]), make_interval(secs => s.waits[2]),
        make_interval(secs => s.waits[3]), make_interval(secs => s.most), make_interval(secs => s.sinces[1]),
        make_interval(secs => s.sinces[2]), make_interval(secs => s.sinces[3]),
        ceil(second.ct * coalesce(messages, runs)::numeric / runs)::bigint,
        ceil(tenth.ct * coalesce(messages, runs)::numeric / runs)::bigint
    FROM spread AS s
    JOIN peak AS second ON second.f = s.f AND second.size = 1.0
    JOIN peak AS tenth ON tenth.f = s.f AND tenth.size = 0.1
    ORDER BY s.f;
END;
$$;

COMMENT ON FUNCTION vtq.simulate_backoff(jsonb, integer, integer, bigint)
    IS 'What a backoff does to many messages that fail together: percentiles of every wait, and how many come back within a second: SELECT * FROM vtq.simulate_backoff(''{"base": 1}'').';

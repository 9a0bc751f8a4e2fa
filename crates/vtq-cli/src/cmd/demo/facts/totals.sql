-- One row: where the messages are, how long it took, and how many workers are gone without a word.
WITH ended AS (
    SELECT a.msg_id, a.enqueued_at, a.archived_at AS ended_at, true AS is_handled
    FROM vtq.demo_archive AS a
    UNION ALL
    SELECT d.msg_id, d.enqueued_at, d.dead_lettered_at, false
    FROM vtq.demo_dlq AS d
),
everywhere AS (
    SELECT e.msg_id FROM ended AS e
    UNION ALL
    SELECT m.msg_id FROM vtq.demo AS m
)
SELECT
    count(*) FILTER (WHERE e.is_handled) AS handled,
    count(*) FILTER (WHERE NOT e.is_handled) AS dead,
    (SELECT count(*) FROM vtq.demo) AS live,
    (SELECT count(DISTINCT v.msg_id) FROM everywhere AS v) AS different,
    coalesce(extract(epoch FROM max(e.ended_at) - min(e.enqueued_at)), 0)::float8 AS elapsed,
    -- A worker that stops takes its row with it; one that is killed cannot.
    (
        SELECT count(*)
        FROM vtq._worker AS w
        WHERE w.queues = ARRAY['demo'] AND w.started_at >= (SELECT min(f.enqueued_at) FROM ended AS f)
    ) AS workers_died
FROM ended AS e

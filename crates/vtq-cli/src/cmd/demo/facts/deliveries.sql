-- How the deliveries ended, how long each kind held its messages, and how long these then had to wait.
WITH deliveries AS (
    SELECT 'done' AS outcome, d.last_read_at AS started_at, d.archived_at AS ended_at, NULL::timestamptz AS vt
    FROM vtq.demo_archive AS d
    UNION ALL
    SELECT a.outcome, a.started_at, a.ended_at, CASE WHEN a.outcome <> 'abandoned' THEN a.vt END
    FROM vtq.demo_attempts AS a
)
SELECT
    d.outcome,
    count(*) AS deliveries,
    coalesce(extract(epoch FROM sum(d.ended_at - d.started_at)), 0)::float8 AS held,
    coalesce(extract(epoch FROM sum(greatest(d.vt - d.ended_at, '0'))), 0)::float8 AS waited
FROM deliveries AS d
GROUP BY d.outcome
ORDER BY d.outcome <> 'done', count(*) DESC, d.outcome

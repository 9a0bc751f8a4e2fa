-- The deliveries of one message that failed and was handled in the end: the one that met the most kinds of trouble.
WITH chosen AS (
    SELECT d.msg_id, d.archived_at, d.enqueued_at, d.last_read_at, d.read_ct, d.refunded_ct, d.message ->> 'event' AS event
    FROM vtq.demo_archive AS d
    JOIN vtq.demo_attempts AS a ON a.msg_id = d.msg_id
    GROUP BY d.msg_id, d.archived_at
    HAVING bool_or(a.outcome = 'failed')
    ORDER BY count(DISTINCT a.outcome) DESC, count(*) DESC, d.msg_id
    LIMIT 1
),
deliveries AS (
    SELECT a.read_ct, a.attempt, a.outcome, a.started_at, a.ended_at, a.vt, coalesce(a.error_message, a.reason) AS why
    FROM vtq.demo_attempts AS a
    JOIN chosen AS c ON c.msg_id = a.msg_id
    UNION ALL
    SELECT c.read_ct, c.read_ct - c.refunded_ct, 'done', c.last_read_at, c.archived_at, NULL, NULL
    FROM chosen AS c
)
SELECT
    c.msg_id,
    c.event,
    d.read_ct,
    d.attempt,
    d.outcome,
    extract(epoch FROM d.started_at - c.enqueued_at)::float8 AS started_after,
    extract(epoch FROM d.ended_at - d.started_at)::float8 AS held,
    extract(epoch FROM d.vt - d.ended_at)::float8 AS waited,
    d.why
FROM deliveries AS d
CROSS JOIN chosen AS c
ORDER BY d.read_ct

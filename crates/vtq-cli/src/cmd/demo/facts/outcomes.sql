-- What became of the messages: how many, and one of them. Each message is in one row only.
WITH trouble AS (
    SELECT
        a.msg_id,
        bool_or(a.outcome IN ('failed', 'panicked', 'timed_out')) AS has_failed,
        bool_or(a.outcome IN ('abandoned', 'never_started')) AS was_abandoned
    FROM vtq.demo_attempts AS a
    GROUP BY a.msg_id
),
ended AS (
    SELECT
        d.msg_id,
        true AS is_handled,
        CASE
            WHEN t.msg_id IS NULL THEN 'first_delivery'
            WHEN t.has_failed THEN 'after_failing'
            WHEN t.was_abandoned THEN 'after_worker_died'
            ELSE 'after_given_back'
        END AS how
    FROM vtq.demo_archive AS d
    LEFT JOIN trouble AS t ON t.msg_id = d.msg_id
    UNION ALL
    SELECT d.msg_id, false, d.headers -> 'vtq_dead_letter' ->> 'reason'
    FROM vtq.demo_dlq AS d
)
SELECT e.is_handled, e.how, count(*) AS messages, min(e.msg_id) AS such_as
FROM ended AS e
GROUP BY e.is_handled, e.how
ORDER BY
    e.is_handled DESC,
    array_position(ARRAY['first_delivery', 'after_failing', 'after_given_back', 'after_worker_died'], e.how),
    count(*) DESC,
    e.how

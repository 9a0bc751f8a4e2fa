-- vtq.lint: what is contradictory or doubtful in the settings of a queue.
--   queue     queue name
--   drain     how long its workers let runs go on when they stop; null: 30 s, the workers' default, and then it is only
--             noted
--   deadline  how long after its sending a message of this queue is worth a retry; null: not looked at
--   returns   severity: error, which create_queue and set_queue refuse; warning, allowed and doubtful; note, a fact
--             · setting: the option that it is about · says: a sentence with both settings and their values. Errors
--             first
--   raises    VT001, 22023
CREATE OR REPLACE FUNCTION vtq.lint(queue text, drain interval DEFAULT NULL, deadline interval DEFAULT NULL)
RETURNS TABLE (severity text, setting text, says text)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    q vtq._queue;
    drained interval := coalesce(vtq._check_length('drain', drain, '0', '365 days'), interval '30 s');
    due interval := vtq._check_length('deadline', deadline, '1 ms', '36500 days');
    t record;
BEGIN
    SELECT r.* INTO q FROM vtq._queue AS r WHERE r.queue = lint.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    t := vtq.time_to_dlq(queue);
    RETURN QUERY
    SELECT l.severity, l.setting, l.says
    FROM (
        SELECT o.severity, o.setting, o.says FROM vtq._lint_options(q.options) AS o
        UNION ALL
        SELECT CASE WHEN drain IS NULL THEN 'note' ELSE 'warning' END, 'timeout', format(
            'timeout is %s and the drain timeout of %s is %s: a run that is longer than that is cut off when its worker stops, and starts again elsewhere',
            coalesce(q.timeout::text, 'none'), CASE WHEN drain IS NULL THEN 'workers, by default,' ELSE 'the workers' END, drained
        )
        WHERE q.timeout > drained OR q.timeout IS NULL
        UNION ALL
        SELECT 'warning', 'max_attempts', format(
            'max_attempts is %s, whose backoffs take at least %s, and the deadline is %s: not all of the runs fit, %s',
            q.max_attempts, t.waits_least, due, CASE q.backoff ->> 'on_deadline'
                WHEN 'clamp' THEN 'and the last that does is moved up to it (on_deadline clamp)'
                ELSE 'and a message dies as expired before (on_deadline dead)'
            END
        )
        WHERE t.waits_least > due
        UNION ALL
        SELECT 'note', 'max_attempts', format(
            'a message that always fails at once is dead after %s of waits, from %s to %s', t.waits_expected, t.waits_least, t.waits_most
        ) || CASE
            WHEN t.worst IS NULL THEN '; at the worst never, since timeout is none'
            ELSE format(', and at the worst after %s, with %s runs of %s', t.worst, q.max_attempts, q.timeout)
        END
    ) AS l
    ORDER BY array_position('{error,warning,note}', l.severity), l.setting, l.says;
END;
$$;

COMMENT ON FUNCTION vtq.lint(text, interval, interval)
    IS 'What is contradictory or doubtful in the settings of a queue, and how long a message takes to the dead letters: SELECT * FROM vtq.lint(''orders'').';

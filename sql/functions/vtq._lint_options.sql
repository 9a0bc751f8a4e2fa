-- vtq._lint_options: what the options of a queue say against each other.
--   options  what is set on the queue, as in vtq._queue.options; checked one by one already
--   returns  severity 'error' for two that contradict each other, which create_queue and set_queue refuse, or 'warning'
--            for what is allowed and doubtful · the setting · a sentence that names both and their values
CREATE OR REPLACE FUNCTION vtq._lint_options(options jsonb)
RETURNS TABLE (severity text, setting text, says text)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    whole jsonb := vtq._check_options(options);
    runs integer := (whole ->> 'max_attempts')::numeric::integer;
    backoff jsonb := whole -> 'backoff';
    delays integer := jsonb_array_length(CASE WHEN backoff ->> 'kind' = 'list' THEN backoff -> 'delays' ELSE '[]' END);
    lease interval := vtq._seconds('visibility_timeout', whole -> 'visibility_timeout', '0', '36500 days');
    run_limit interval := vtq._seconds('timeout', whole -> 'timeout', '0', '36500 days');
BEGIN
    RETURN QUERY
    SELECT l.severity, l.setting, l.says
    FROM (VALUES
        (
            delays > runs - 1, 'error', 'backoff',
            format('backoff lists %s delays and max_attempts is %s: there would be only %s waits; shorten the list or raise max_attempts to %s', delays, runs, runs - 1, delays + 1)
        ),
        (
            runs = 1 AND coalesce(options -> 'backoff', 'null') <> 'null', 'warning', 'backoff',
            format('max_attempts is 1 and backoff is %s: only a message with a max_attempts of its own ever waits for a second run', options -> 'backoff')
        ),
        (
            run_limit IS NULL, 'warning', 'timeout',
            format('timeout is none and visibility_timeout is %s: a worker renews that for as long as the run lasts, so a handler that hangs holds its message for ever', lease)
        ),
        (
            lease > greatest(run_limit, '1 min'), 'warning', 'visibility_timeout',
            format('visibility_timeout is %s and timeout is %s: after a crash of its worker a message waits longer than any run may last', lease, run_limit)
        ),
        (
            lease < interval '3 s', 'warning', 'visibility_timeout',
            format('visibility_timeout is %s, so a heartbeat is due every %s: one that is slow loses the lease of a run that goes on, up to its timeout of %s', lease, lease / 3, coalesce(run_limit::text, 'none'))
        ),
        (
            runs > 1 AND backoff -> 'jitter' IN ('"none"', '0'), 'warning', 'backoff',
            format('backoff has jitter %s and base %s: what fails together comes back together', backoff -> 'jitter', backoff -> 'base')
        ),
        (
            coalesce(options -> 'aging', 'null') <> 'null' AND jsonb_array_length(whole -> 'priorities') = 1, 'warning', 'aging',
            format('aging is %s and priorities is %s: with one level there is nothing to go ahead of', options ->> 'aging', whole -> 'priorities')
        )
    ) AS l (applies, severity, setting, says)
    WHERE l.applies;
END;
$$;

COMMENT ON FUNCTION vtq._lint_options(jsonb) IS 'Internal: what the options of a queue say against each other.';

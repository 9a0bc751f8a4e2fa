-- vtq.time_to_dlq: how long a message that always fails takes from its first run to the dead letters.
--   queue    queue name
--   returns  waits_least, waits_expected, waits_most: all backoffs together · worst: waits_most and every run as long as
--            the timeout lets it; null where there is none
--   raises   VT001
-- Not counted: time in which a message is ready and no worker is free. The waits are summed one by one up to the 200th;
-- the others are taken to be as long as the last one, which the growing kinds are from there on, or a bound for them.
CREATE OR REPLACE FUNCTION vtq.time_to_dlq(
    queue text,
    OUT waits_least interval,
    OUT waits_expected interval,
    OUT waits_most interval,
    OUT worst interval
)
RETURNS record
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    summed_to CONSTANT integer := 200;
    setting vtq._queue;
BEGIN
    SELECT q.* INTO setting FROM vtq._queue AS q WHERE q.queue = time_to_dlq.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    SELECT coalesce(sum(b.least * w.times), '0'), coalesce(sum(b.middle * w.times), '0'), coalesce(sum(b.most * w.times), '0')
    INTO waits_least, waits_expected, waits_most
    FROM (
        SELECT n AS attempt, 1 AS times FROM generate_series(1, least(setting.max_attempts - 1, summed_to)) AS n
        UNION ALL
        SELECT setting.max_attempts - 1, setting.max_attempts - 1 - summed_to
        WHERE setting.max_attempts - 1 > summed_to
    ) AS w
    -- The jitter is uniform over its range, so its middle is what is to be expected.
    CROSS JOIN LATERAL (
        SELECT vtq.backoff(setting.backoff, w.attempt, 0) AS least,
            vtq.backoff(setting.backoff, w.attempt, 0.5) AS middle,
            vtq.backoff(setting.backoff, w.attempt, 1) AS most
    ) AS b;
    worst := waits_most + setting.timeout * setting.max_attempts;
END;
$$;

COMMENT ON FUNCTION vtq.time_to_dlq(text)
    IS 'How long a message that always fails takes from its first run to the dead letters: the waits, and the worst case with every run at its timeout.';

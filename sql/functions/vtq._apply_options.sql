-- vtq._apply_options: writes a queue's row in the catalogue from its options.
--   queue    queue name, checked
--   options  what is set on the queue, nothing else
--   writes   vtq._queue
--   raises   22023
CREATE OR REPLACE FUNCTION vtq._apply_options(queue text, options jsonb)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    whole jsonb := vtq._check_options(options);
    forever CONSTANT interval := interval '36500 days';
BEGIN
    PERFORM vtq._refuse_contradiction(queue, options);
    INSERT INTO vtq._queue (
        queue, options, visibility_timeout, max_attempts, backoff, timeout, on_ack,
        archive_retention, attempts_retention, dlq_retention, priorities, exclusive_limit, group_on_dead,
        max_in_flight, rate_limit, rate_interval, key_rate_limit, key_rate_interval, aging, unlogged
    )
    VALUES (
        _apply_options.queue,
        _apply_options.options,
        vtq._seconds('visibility_timeout', whole -> 'visibility_timeout', '0', forever),
        (whole ->> 'max_attempts')::numeric::smallint,
        whole -> 'backoff',
        vtq._seconds('timeout', whole -> 'timeout', '0', forever),
        whole ->> 'on_ack',
        vtq._seconds('archive_retention', whole -> 'archive_retention', '0', forever),
        vtq._seconds('attempts_retention', whole -> 'attempts_retention', '0', forever),
        vtq._seconds('dlq_retention', whole -> 'dlq_retention', '0', forever),
        ARRAY(
            SELECT level::numeric::smallint
            FROM jsonb_array_elements_text(whole -> 'priorities') WITH ORDINALITY AS p (level, place)
            ORDER BY place
        ),
        (whole ->> 'exclusive_limit')::numeric::integer,
        whole ->> 'group_on_dead',
        (whole ->> 'max_in_flight')::numeric::integer,
        (whole #>> '{rate,limit}')::numeric::integer,
        vtq._seconds('interval', whole #> '{rate,interval}', '0', forever),
        (whole #>> '{key_rate,limit}')::numeric::integer,
        vtq._seconds('interval', whole #> '{key_rate,interval}', '0', forever),
        vtq._seconds('aging', whole -> 'aging', '0', forever),
        (whole ->> 'unlogged')::boolean
    )
    ON CONFLICT (queue) DO UPDATE
    SET options = excluded.options,
        visibility_timeout = excluded.visibility_timeout,
        max_attempts = excluded.max_attempts,
        backoff = excluded.backoff,
        timeout = excluded.timeout,
        on_ack = excluded.on_ack,
        archive_retention = excluded.archive_retention,
        attempts_retention = excluded.attempts_retention,
        dlq_retention = excluded.dlq_retention,
        priorities = excluded.priorities,
        exclusive_limit = excluded.exclusive_limit,
        group_on_dead = excluded.group_on_dead,
        max_in_flight = excluded.max_in_flight,
        rate_limit = excluded.rate_limit,
        rate_interval = excluded.rate_interval,
        key_rate_limit = excluded.key_rate_limit,
        key_rate_interval = excluded.key_rate_interval,
        aging = excluded.aging,
        unlogged = excluded.unlogged;
END;
$$;

COMMENT ON FUNCTION vtq._apply_options(text, jsonb) IS 'Internal: writes a queue''s row in the catalogue from its options.';

-- vtq._check_options: checks the options of a queue.
--   options  as given to create_queue or set_queue
--   returns  every option with its value: what is not given is the default's
--   raises   22023 naming the option, the value and the rule
CREATE OR REPLACE FUNCTION vtq._check_options(options jsonb)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    defaults jsonb := vtq._default_options();
    whole jsonb;
    unknown text;
    broken text;
BEGIN
    IF options IS NULL OR jsonb_typeof(options) <> 'object' THEN
        RAISE EXCEPTION 'options % are not allowed: give an object such as {"max_attempts": 8}',
            coalesce(left(options::text, 80), 'null') USING ERRCODE = '22023';
    END IF;
    SELECT k INTO unknown FROM jsonb_object_keys(options) AS k WHERE NOT defaults ? k LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'option "%" is not known: a queue has %', unknown,
            (SELECT string_agg(k, ', ' ORDER BY k) FROM jsonb_object_keys(defaults) AS k)
            USING ERRCODE = '22023';
    END IF;

    whole := defaults || options;
    broken := CASE
        WHEN vtq._broken_number(whole -> 'max_attempts', 1, 32767) IS NOT NULL
            OR (whole ->> 'max_attempts')::numeric % 1 <> 0
            THEN format('max_attempts is %s, but must be a whole number from 1 to 32767: the runs allowed, the first included', whole -> 'max_attempts')
        WHEN NOT (whole -> 'on_ack') IN ('"archive"', '"delete"')
            THEN format('on_ack is %s, but must be "archive" or "delete"', whole -> 'on_ack')
        WHEN vtq._broken_number(whole -> 'exclusive_limit', 1, 10000) IS NOT NULL
            OR (whole ->> 'exclusive_limit')::numeric % 1 <> 0
            THEN format('exclusive_limit is %s, but must be a whole number from 1 to 10000: how many messages of one exclusive_key run at once', whole -> 'exclusive_limit')
        WHEN jsonb_typeof(whole -> 'max_in_flight') <> 'null' AND (
            vtq._broken_number(whole -> 'max_in_flight', 1, 1000000) IS NOT NULL
            OR (whole ->> 'max_in_flight')::numeric % 1 <> 0
        ) THEN format('max_in_flight is %s, but must be null or a whole number from 1 to 1000000: how many messages of the queue run at once, over all workers', whole -> 'max_in_flight')
        WHEN NOT vtq._is_rate(whole -> 'rate')
            THEN format('rate is %s, but must be null or {"limit": from 1 to 1000000, "interval": a length from 1 ms to 365 days}', whole -> 'rate')
        WHEN NOT vtq._is_rate(whole -> 'key_rate')
            THEN format('key_rate is %s, but must be null or {"limit": from 1 to 1000000, "interval": a length from 1 ms to 365 days}', whole -> 'key_rate')
        WHEN NOT (whole -> 'group_on_dead') IN ('"continue"', '"pause"')
            THEN format('group_on_dead is %s, but must be "continue" or "pause"', whole -> 'group_on_dead')
        WHEN jsonb_typeof(whole -> 'unlogged') <> 'boolean'
            THEN format('unlogged is %s, but must be true or false', whole -> 'unlogged')
        WHEN jsonb_typeof(whole -> 'visibility_timeout') = 'null'
            THEN 'visibility_timeout is null, but must be a length of time'
        WHEN NOT vtq._are_levels(whole -> 'priorities')
            THEN format('priorities is %s, but must list 1 to 16 different whole numbers from -32768 to 32767, the one served first in front', whole -> 'priorities')
    END;
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION 'option %', broken USING ERRCODE = '22023';
    END IF;
    -- Called for their refusals.
    PERFORM vtq._seconds('visibility_timeout', whole -> 'visibility_timeout', interval '1 ms', interval '12 hours'),
        vtq._seconds('timeout', whole -> 'timeout', interval '1 ms', interval '365 days'),
        vtq._seconds('aging', whole -> 'aging', interval '1 ms', interval '36500 days'),
        vtq._seconds(r, whole -> r, interval '1 second', interval '36500 days')
    FROM unnest(ARRAY['archive_retention', 'attempts_retention', 'dlq_retention']) AS r;
    RETURN whole || jsonb_build_object(
        'backoff', vtq._check_backoff(defaults -> 'backoff', whole -> 'backoff')
    );
END;
$$;

COMMENT ON FUNCTION vtq._check_options(jsonb) IS 'Internal: checks the options of a queue and fills in the defaults.';

-- vtq._check_keys: checks what a send says about keys and about the deadline for retries.
--   message_ct          how many messages are sent
--   retry_until         as given to vtq.send
--   due                 when the messages are due
--   unique_keys .. exclusive_keys   as given to vtq.send_batch
--   raises   22023 naming the key, the value and the rule
CREATE OR REPLACE FUNCTION vtq._check_keys(
    message_ct integer,
    retry_until timestamptz,
    due timestamptz,
    unique_keys text[],
    unique_until text,
    unique_for interval,
    on_conflict text,
    max_wait interval,
    delay interval,
    group_keys text[],
    exclusive_keys text[]
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT * FROM (VALUES
            ('unique_key', unique_keys), ('group_key', group_keys), ('exclusive_key', exclusive_keys)
        ) AS g (name, keys)
        WHERE g.keys IS NOT NULL
    LOOP
        IF cardinality(given.keys) <> message_ct THEN
            RAISE EXCEPTION '% has % elements, but must have one for each of the % messages', given.name || 's',
                cardinality(given.keys), message_ct USING ERRCODE = '22023';
        END IF;
        IF EXISTS (SELECT FROM unnest(given.keys) AS k WHERE octet_length(k) NOT BETWEEN 1 AND 1024) THEN
            RAISE EXCEPTION '% is not allowed to be empty or longer than 1024 bytes', given.name USING ERRCODE = '22023';
        END IF;
    END LOOP;
    IF EXISTS (
        SELECT FROM unnest(group_keys, exclusive_keys) AS k (g, x) WHERE k.g IS NOT NULL AND k.x IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'group_key and exclusive_key exclude each other: of a group one message runs at a time anyway'
            USING ERRCODE = '22023';
    END IF;
    IF num_nonnulls(unique_until, unique_for, on_conflict, max_wait) > 0
        AND coalesce(array_remove(unique_keys, NULL), '{}') = '{}'
        AND message_ct > 0
    THEN
        RAISE EXCEPTION 'unique_until, unique_for, on_conflict and max_wait say something about a unique_key, and none is given'
            USING ERRCODE = '22023';
    END IF;
    IF unique_until NOT IN ('done', 'started') THEN
        RAISE EXCEPTION 'unique_until "%" is not known: it must be done or started', unique_until USING ERRCODE = '22023';
    END IF;
    IF on_conflict NOT IN ('skip', 'replace', 'error') THEN
        RAISE EXCEPTION 'on_conflict "%" is not known: it must be skip, replace or error', on_conflict USING ERRCODE = '22023';
    END IF;
    PERFORM vtq._check_length('unique_for', unique_for, interval '1 ms', interval '36500 days');
    PERFORM vtq._check_length('max_wait', max_wait, interval '1 ms', interval '36500 days');
    IF max_wait IS NOT NULL AND (on_conflict IS DISTINCT FROM 'replace' OR delay IS NULL) THEN
        RAISE EXCEPTION 'max_wait % says how far later sends may put a message off: it needs on_conflict replace and a delay',
            max_wait USING ERRCODE = '22023';
    END IF;
    IF max_wait < delay THEN
        RAISE EXCEPTION 'max_wait % is shorter than delay %: the first send alone would pass it', max_wait, delay
            USING ERRCODE = '22023';
    END IF;
    IF retry_until IS NOT NULL THEN
        PERFORM vtq._check_instant('retry_until', retry_until);
        IF retry_until <= due THEN
            RAISE EXCEPTION 'retry_until % is not after %, when the message is due', retry_until, due USING ERRCODE = '22023';
        END IF;
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_keys(
    integer, timestamptz, timestamptz, text[], text, interval, text, interval, interval, text[], text[]
) IS 'Internal: checks what a send says about keys and about the deadline for retries.';

-- vtq._check_backoff: checks a backoff policy and lays it over the one below it.
--   below    the policy that fills what this one leaves out (the queue's, or the default); null: none
--   policy   {"kind", "base", "max", "jitter", "delays", "on_deadline"}, any part of it; null: `below` as it is
--   returns  the two together
--   raises   22023 naming the key, the value and the rule
CREATE OR REPLACE FUNCTION vtq._check_backoff(below jsonb, policy jsonb)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    key text;
    value jsonb;
    whole jsonb := below;
    rule text;
BEGIN
    IF policy IS NULL THEN
        RETURN below;
    END IF;
    IF jsonb_typeof(policy) <> 'object' THEN
        RAISE EXCEPTION 'backoff % is not allowed: give an object such as {"kind": "exponential", "base": 5, "max": 300, "jitter": 0.15}',
            left(policy::text, 80) USING ERRCODE = '22023';
    END IF;
    FOR key, value IN SELECT p.key, p.value FROM jsonb_each(policy) AS p LOOP
        rule := CASE key
            WHEN 'kind' THEN CASE WHEN value NOT IN ('"exponential"', '"fixed"', '"linear"', '"list"')
                THEN 'one of exponential, fixed, linear, list' END
            WHEN 'base' THEN vtq._broken_number(value, 0.001, 31536000)
            WHEN 'max' THEN vtq._broken_number(value, 0.001, 31536000)
            WHEN 'jitter' THEN CASE WHEN value NOT IN ('"none"', '"equal"', '"full"')
                AND vtq._broken_number(value, 0, 1) IS NOT NULL
                THEN 'a fraction from 0 to 1, or one of none, equal, full' END
            WHEN 'delays' THEN CASE WHEN jsonb_typeof(value) <> 'array'
                OR jsonb_array_length(value) NOT BETWEEN 1 AND 1000
                OR jsonb_path_exists(value, 'strict $[*] ? (@.type() != "number" || @ < 0 || @ > 31536000)')
                THEN '1 to 1000 numbers of seconds, each from 0 to 31536000' END
            WHEN 'on_deadline' THEN CASE WHEN value NOT IN ('"dead"', '"clamp"')
                THEN 'dead or clamp: what becomes of a message whose wait would end past its deadline' END
            ELSE 'absent; the keys of a backoff are kind, base, max, jitter, delays, on_deadline'
        END;
        IF rule IS NOT NULL THEN
            RAISE EXCEPTION 'backoff key "%" is %, but must be %', key, left(value::text, 80), rule
                USING ERRCODE = '22023';
        END IF;
    END LOOP;

    whole := coalesce(below, '{}') || policy;
    IF whole ->> 'kind' = 'list' AND NOT whole ? 'delays' THEN
        RAISE EXCEPTION 'backoff kind "list" needs "delays": the seconds before each further run'
            USING ERRCODE = '22023';
    END IF;
    IF whole ->> 'kind' IN ('exponential', 'linear') AND (whole -> 'base') > (whole -> 'max') THEN
        RAISE EXCEPTION 'backoff "base" % is above "max" %: the first delay would already be cut; raise max or lower base',
            whole -> 'base', whole -> 'max' USING ERRCODE = '22023';
    END IF;
    RETURN whole;
END;
$$;

COMMENT ON FUNCTION vtq._check_backoff(jsonb, jsonb)
    IS 'Internal: checks a backoff policy and lays it over the one below it.';

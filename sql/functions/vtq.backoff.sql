-- vtq.backoff: the delay before the next run after a failed attempt.
--   policy         {"kind", "base", "max", "jitter", "delays", "on_deadline"}, lengths in seconds; what is left out is the default's
--   attempt        the attempt that failed, 1 for the first
--   jitter_source  where in the jitter's range to land, 0 to 1; null: at random
--   returns  the delay. Nominally: exponential min(max, base * 2^(attempt-1)) · linear min(max, base * attempt) ·
--            fixed base · list delays[attempt], past the end its last entry.
--            Jitter: a fraction f spreads over ±f · equal over half..full · full over 0..full · none not at all.
--            "max" holds after jitter too, and the jitter then fills what is left below it, so that not half of all waits
--            are the longest; it bounds exponential and linear, fixed and list say their own lengths
--   raises   22023
-- Terms "equal" and "full" jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
CREATE OR REPLACE FUNCTION vtq.backoff(
    policy jsonb,
    attempt integer,
    jitter_source double precision DEFAULT NULL
)
RETURNS interval
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog
AS $$
DECLARE
    whole jsonb := vtq._check_backoff(vtq._default_options() -> 'backoff', policy);
    kind text := whole ->> 'kind';
    base double precision := (whole ->> 'base')::double precision;
    -- A double holds base * 2^62 for every base that is allowed, and by then any max is reached.
    doublings integer := greatest(least(attempt, 63), 1) - 1;
    ceiling double precision := CASE
        WHEN kind IN ('exponential', 'linear') THEN (whole ->> 'max')::double precision
        ELSE 'infinity'
    END;
    jitter jsonb := whole -> 'jitter';
    source double precision := coalesce(jitter_source, random());
    delay double precision;
BEGIN
    IF attempt IS NULL OR attempt < 1 THEN
        RAISE EXCEPTION 'attempt % is not allowed: the first attempt is 1', coalesce(attempt::text, 'null')
            USING ERRCODE = '22023';
    END IF;
    IF source NOT BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'jitter_source % is not allowed: it must be from 0 to 1', source USING ERRCODE = '22023';
    END IF;
    delay := CASE kind
        WHEN 'exponential' THEN base * power(2::double precision, doublings)
        WHEN 'linear' THEN base * attempt
        WHEN 'fixed' THEN base
        ELSE (whole #>> ARRAY['delays', (least(attempt, jsonb_array_length(whole -> 'delays')) - 1)::text])::double precision
    END;
    delay := least(delay, ceiling);
    delay := CASE
        WHEN jitter = '"none"' THEN delay
        WHEN jitter = '"equal"' THEN delay / 2 * (1 + source)
        WHEN jitter = '"full"' THEN delay * source
        ELSE delay * (1 - (jitter #>> '{}')::double precision)
            + source * (least(ceiling, delay * (1 + (jitter #>> '{}')::double precision))
                - delay * (1 - (jitter #>> '{}')::double precision))
    END;
    RETURN make_interval(secs => least(delay, ceiling));
END;
$$;

COMMENT ON FUNCTION vtq.backoff(jsonb, integer, double precision)
    IS 'The delay before the next run after failed attempt n. Seconds in the policy; vtq.backoff(''{"base": 1}'', 3).';

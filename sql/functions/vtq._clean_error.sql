-- vtq._clean_error: brings an error into the shape that is stored, so that recording one can never fail.
--   error    an object with class, code, message, detail, worker; a string is taken for the message,
--            anything else for its text
--   returns  outcome  'panicked' or 'timed_out' where the error says so under "outcome", else 'failed'
--            class, code, message, detail, worker   null where nothing is known; cut at 200, 128, 16384,
--            16384 and 200 characters, with a marker at the cut
CREATE OR REPLACE FUNCTION vtq._clean_error(
    error jsonb,
    OUT outcome text,
    OUT class text,
    OUT code text,
    OUT message text,
    OUT detail text,
    OUT worker text
)
RETURNS record
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
DECLARE
    whole jsonb := CASE jsonb_typeof(error)
        WHEN 'object' THEN error
        WHEN 'null' THEN '{}'
        ELSE jsonb_build_object('message', error #>> '{}')
    END;
BEGIN
    outcome := CASE WHEN whole ->> 'outcome' IN ('panicked', 'timed_out') THEN whole ->> 'outcome' ELSE 'failed' END;
    class := vtq._cut(whole ->> 'class', 200);
    -- A code is for machines to compare: letters, digits, ".", "_" and "-", nothing else.
    code := nullif(regexp_replace(vtq._cut(whole ->> 'code', 128), '[^A-Za-z0-9._-]', '', 'g'), '');
    message := vtq._cut(whole ->> 'message', 16384);
    detail := vtq._cut(whole ->> 'detail', 16384);
    worker := vtq._cut(whole ->> 'worker', 200);
END;
$$;

COMMENT ON FUNCTION vtq._clean_error(jsonb) IS 'Internal: brings an error into the shape that is stored.';

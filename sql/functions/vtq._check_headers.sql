-- vtq._check_headers: refuses headers that are not an object, or that use vtq's own keys.
--   headers  null or an object
--   which    the message's place in its batch, for the sentence; null: a single message
--   raises   22023
CREATE OR REPLACE FUNCTION vtq._check_headers(headers jsonb, which bigint DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
DECLARE
    -- A JSON null is no header, and says so by its type.
    given text := jsonb_typeof(headers);
    place text := coalesce(' of message ' || which, '');
    reserved text;
BEGIN
    IF given IS NULL THEN
        RETURN;
    END IF;
    IF given <> 'object' THEN
        RAISE EXCEPTION 'headers% are a JSON %, but must be an object', place, given USING ERRCODE = '22023';
    END IF;
    SELECT k INTO reserved FROM jsonb_object_keys(headers) AS k WHERE starts_with(k, 'vtq_') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'header "%"%: keys that begin with vtq_ are vtq''s own', left(reserved, 80), place
            USING ERRCODE = '22023';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_headers(jsonb, bigint)
    IS 'Internal: refuses headers that are not an object, or that use vtq''s own keys.';

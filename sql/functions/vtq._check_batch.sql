-- vtq._check_batch: refuses a batch of messages that cannot be sent as it is.
--   messages, headers   as given to vtq.send_batch
--   raises   22023 naming the message by its place, 1 for the first
CREATE OR REPLACE FUNCTION vtq._check_batch(messages jsonb[], headers jsonb[])
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
DECLARE
    missing bigint;
BEGIN
    IF messages IS NULL THEN
        RAISE EXCEPTION 'messages is null: give an array' USING ERRCODE = '22023';
    END IF;
    IF array_ndims(messages) > 1 THEN
        RAISE EXCEPTION 'messages has % dimensions, but must be a plain array', array_ndims(messages)
            USING ERRCODE = '22023';
    END IF;
    -- An array need not begin at 1.
    missing := array_position(messages, NULL) - array_lower(messages, 1) + 1;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'message % is null: send the JSON ''null'' if that is what you mean', missing
            USING ERRCODE = '22023';
    END IF;
    IF headers IS NOT NULL THEN
        IF cardinality(headers) <> cardinality(messages) THEN
            RAISE EXCEPTION 'headers has % elements, but must have one for each of the % messages',
                cardinality(headers), cardinality(messages) USING ERRCODE = '22023';
        END IF;
        -- The sentence comes from the function for one; asking it for each would cost more than the insert.
        PERFORM vtq._check_headers(h.headers, h.place)
        FROM unnest(headers) WITH ORDINALITY AS h (headers, place)
        WHERE CASE jsonb_typeof(h.headers)
            WHEN 'object' THEN EXISTS (SELECT FROM jsonb_object_keys(h.headers) AS k WHERE starts_with(k, 'vtq_'))
            ELSE h.headers IS NOT NULL
        END;
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_batch(jsonb[], jsonb[]) IS 'Internal: refuses a batch of messages that cannot be sent as it is.';

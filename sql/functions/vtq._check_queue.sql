-- vtq._check_queue: refuses a name that no queue can have.
--   queue    the name as given
--   returns  the name
--   raises   22023 with the rule
-- 47 bytes leave room for the longest name made from it, the daily archive partition. An allow-list: what it
-- lets through is safe in any identifier, and cannot collide with the catalogue, whose names start with "_".
CREATE OR REPLACE FUNCTION vtq._check_queue(queue text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
BEGIN
    -- COLLATE "C": in other collations a range such as a-z may take in accented letters.
    IF queue IS NULL
        OR octet_length(queue) NOT BETWEEN 1 AND 47
        OR queue COLLATE "C" !~ '^[a-z0-9][a-z0-9_-]*$'
        -- "$" also matches before a line feed at the end.
        OR strpos(queue, E'\n') > 0
        OR queue ~ '(_dlq|_archive|_attempts)$'
    THEN
        RAISE EXCEPTION 'queue name % is not allowed: 1 to 47 bytes, lower-case letters, digits, "_" and "-", the first a letter or digit, not ending in _dlq, _archive or _attempts',
            coalesce('"' || left(queue, 80) || '"', 'null')
            USING ERRCODE = '22023';
    END IF;
    RETURN queue;
END;
$$;

COMMENT ON FUNCTION vtq._check_queue(text) IS 'Internal: refuses a name that no queue can have, and says the rule.';

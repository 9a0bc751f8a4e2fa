-- vtq._is_whole: whether a queue exists with all of its tables and functions, and its front.
--   queue    queue name
CREATE OR REPLACE FUNCTION vtq._is_whole(queue text)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = pg_catalog
AS $$
    SELECT EXISTS (SELECT FROM vtq._queue AS q WHERE q.queue = $1)
        AND to_regclass(format('vtq.%I', $1)) IS NOT NULL
        AND to_regclass(format('vtq.%I', $1 || '_dlq')) IS NOT NULL
        AND to_regclass(format('vtq.%I', $1 || '_archive')) IS NOT NULL
        AND to_regclass(format('vtq.%I', $1 || '_attempts')) IS NOT NULL
        AND to_regclass(format('vtq.%I', '_' || $1 || '_front')) IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM vtq._own_functions($1) AS own
            WHERE to_regproc(own) IS NULL
        )
$$;

COMMENT ON FUNCTION vtq._is_whole(text) IS 'Internal: whether a queue exists with all of its tables and functions.';

-- vtq.queue_options: the options of a queue as they are in force.
--   queue    queue name
--   returns  every option: what was set, and the default's value for the rest
--   raises   VT001
CREATE OR REPLACE FUNCTION vtq.queue_options(queue text)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    options jsonb;
BEGIN
    SELECT q.options INTO options FROM vtq._queue AS q WHERE q.queue = queue_options.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    RETURN vtq._check_options(options);
END;
$$;

COMMENT ON FUNCTION vtq.queue_options(text) IS 'The options of a queue as they are in force: what was set, and the defaults for the rest.';

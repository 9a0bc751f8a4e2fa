-- vtq.set_queue: changes options of a queue. They hold at once, for the messages in it too.
--   queue    queue name
--   options  the options to change; the others stay. A JSON null sets "none" where an option has that
--            (timeout, aging and the retentions), and takes the default again for the others
--   returns  every option as it is now in force
--   writes   vtq._queue
--   raises   VT001, 22023; VT005 when a priority level would go that messages still have
CREATE OR REPLACE FUNCTION vtq.set_queue(queue text, options jsonb)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    present vtq._queue;
    changed jsonb;
    stray smallint;
BEGIN
    -- Changes to one queue come one after another: each starts from what the last one left.
    SELECT q.* INTO present FROM vtq._queue AS q WHERE q.queue = set_queue.queue FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    IF options IS NULL OR jsonb_typeof(options) <> 'object' THEN
        PERFORM vtq._check_options(options);
    END IF;
    SELECT present.options || coalesce(jsonb_object_agg(o.key, o.value), '{}')
    INTO changed
    FROM jsonb_each(options) AS o;
    changed := changed - ARRAY(
        SELECT o.key FROM jsonb_each(options) AS o
        WHERE o.value = 'null' AND o.key <> ALL ('{timeout,aging,archive_retention,attempts_retention,dlq_retention}')
    );
    PERFORM vtq._check_options(options - ARRAY(
        SELECT o.key FROM jsonb_each(options) AS o WHERE o.value = 'null' AND vtq._default_options() ? o.key
    ));
    IF coalesce((changed ->> 'unlogged')::boolean, false) <> present.unlogged THEN
        RAISE EXCEPTION 'option unlogged of queue "%" cannot change: it is fixed when the queue is created', queue
            USING ERRCODE = '22023';
    END IF;
    PERFORM vtq._apply_options(queue, changed);
    IF options ? 'priorities' THEN
        EXECUTE format(
            'SELECT level FROM unnest($1) AS level WHERE level <> ALL ($2)'
            ' AND EXISTS (SELECT FROM vtq.%I AS m WHERE m.priority = level) LIMIT 1', queue
        ) INTO stray
        USING present.priorities, (SELECT q.priorities FROM vtq._queue AS q WHERE q.queue = set_queue.queue);
    END IF;
    IF stray IS NOT NULL THEN
        RAISE EXCEPTION 'option priorities of queue "%" cannot drop level %: messages of that level are waiting', queue, stray
            USING ERRCODE = 'VT005';
    END IF;
    RETURN vtq.queue_options(queue);
END;
$$;

COMMENT ON FUNCTION vtq.set_queue(text, jsonb)
    IS 'Changes options of a queue, at once and for the messages in it too: vtq.set_queue(''orders'', ''{"visibility_timeout": "2 min"}'').';

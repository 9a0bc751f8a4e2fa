-- vtq._create_missing: builds those tables of a queue that are not there, and its functions and front.
--   queue    queue name; its row is in the catalogue and the caller holds the queue's lock
--   writes   the four tables of the queue, its functions, and the sequence vtq."_<queue>_front"
CREATE OR REPLACE FUNCTION vtq._create_missing(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    IF to_regclass(format('vtq.%I', queue)) IS NULL THEN
        PERFORM vtq._create_live(q.queue, q.unlogged) FROM vtq._queue AS q WHERE q.queue = _create_missing.queue;
    END IF;
    IF to_regclass(format('vtq.%I', queue || '_dlq')) IS NULL THEN
        PERFORM vtq._create_dlq(queue);
    END IF;
    IF to_regclass(format('vtq.%I', queue || '_attempts')) IS NULL THEN
        PERFORM vtq._create_attempts(queue);
    END IF;
    IF to_regclass(format('vtq.%I', queue || '_archive')) IS NULL THEN
        PERFORM vtq._create_archive(queue);
        UPDATE vtq._queue AS q SET archive_until = '-infinity' WHERE q.queue = _create_missing.queue;
        PERFORM vtq._archive_ahead(queue);
    END IF;
    PERFORM vtq._create_verbs(queue);
END;
$$;

COMMENT ON FUNCTION vtq._create_missing(text) IS 'Internal: builds those tables of a queue that are not there, and its functions.';

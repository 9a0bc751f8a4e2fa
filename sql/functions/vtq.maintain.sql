-- vtq.maintain: what keeps a queue small: retention, archive partitions, compaction.
--   queue    queue name
--   returns  {"ran", "partitions_dropped", "attempts_removed", "dead_removed", "compacted", "compaction"}; ran is
--            false when another session is at it
--   writes   the four tables of the queue, vtq._queue, vtq._taken
--   raises   VT001
-- Any worker runs it now and then; one at a time by a lock that ends with the transaction. Rows go in batches of
-- 10000, so that no call holds its locks for long: call it again while attempts_removed or dead_removed is 10000.
CREATE OR REPLACE FUNCTION vtq.maintain(queue text)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = pg_catalog
SET client_min_messages = warning
AS $$
DECLARE
    setting vtq._queue;
    dropped_ct bigint;
    attempts_ct bigint := 0;
    dead_ct bigint := 0;
    compaction text;
    -- Without its dead letters a queue is maintained all the same; whose an attempt is cannot be told then.
    has_dlq boolean;
BEGIN
    SELECT q.* INTO setting FROM vtq._queue AS q WHERE q.queue = maintain.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    IF NOT pg_try_advisory_xact_lock(hashtextextended('vtq.maintain.' || queue, 0)) THEN
        RETURN jsonb_build_object('ran', false);
    END IF;

    has_dlq := to_regclass(format('vtq.%I', queue || '_dlq')) IS NOT NULL;
    PERFORM vtq._archive_ahead(queue);
    dropped_ct := vtq._drop_archive(queue, setting.archive_retention);
    IF has_dlq AND setting.attempts_retention IS NOT NULL THEN
        attempts_ct := vtq._remove_attempts(queue, setting.attempts_retention);
    END IF;
    IF has_dlq AND setting.dlq_retention IS NOT NULL THEN
        dead_ct := vtq.dlq_purge(queue, older_than => setting.dlq_retention);
    END IF;
    PERFORM vtq._remove_taken(queue);
    PERFORM vtq._adopt(queue);
    compaction := vtq._compact(queue);
    UPDATE vtq._queue AS q SET maintained_at = clock_timestamp() WHERE q.queue = maintain.queue;
    RETURN jsonb_build_object(
        'ran', true,
        'partitions_dropped', dropped_ct,
        'attempts_removed', attempts_ct,
        'dead_removed', dead_ct,
        'compacted', compaction = 'done',
        'compaction', compaction
    );
END;
$$;

COMMENT ON FUNCTION vtq.maintain(text) IS 'Retention, archive partitions and compaction of a queue. Workers call it; so may you.';

-- vtq._retake_key: a message that was started waits again: it takes its key back, or gives way to a newer copy.
--   queue    queue name
--   msg_id   the message, locked by the caller; its lease has ended and its key is free
--   returns  null when it has the key back, 'superseded' when a newer copy has it or has had it
--   writes   vtq.<queue>, vtq.<queue>_archive, vtq.<queue>_attempts
--   index    primary key, _<queue>_unique
--   raises   40001
-- It waits for a sender of the same key whose transaction is open: only its end tells whether there is a newer copy.
CREATE OR REPLACE FUNCTION vtq._retake_key(queue text, msg_id bigint)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    key text;
    newer bigint;
BEGIN
    EXECUTE format('SELECT m.unique_key FROM vtq.%I AS m WHERE m.msg_id = $1', queue)
    INTO key USING msg_id;
    LOOP
        newer := coalesce(newer, vtq._superseder(queue, msg_id, key));
        IF newer IS NOT NULL THEN
            PERFORM vtq._supersede(queue, msg_id, newer);
            RETURN 'superseded';
        END IF;
        BEGIN
            EXECUTE format('UPDATE vtq.%I AS m SET is_key_free = false WHERE m.msg_id = $1', queue) USING msg_id;
            RETURN NULL;
        EXCEPTION WHEN unique_violation THEN
            PERFORM vtq._look_again(queue);
            -- The sender has committed meanwhile. A copy with a lower msg_id is a dead letter that was redriven: the
            -- key is its, whoever is older.
            EXECUTE format(
                'SELECT m.msg_id FROM vtq.%I AS m'
                ' WHERE m.unique_key = $1 AND m.unique_key IS NOT NULL AND NOT m.is_key_free', queue
            ) INTO newer USING key;
        END;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION vtq._retake_key(text, bigint)
    IS 'Internal: a message that was started waits again: it takes its key back, or gives way to a newer copy.';

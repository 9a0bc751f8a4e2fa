-- vtq.redrive: moves one dead letter back into its queue: same id, new budget, block stripped, trip counted.
--   queue    queue name
--   msg_id   the dead letter
--   delay    due this long from now, 0 to 36500 days; default now
--   returns  true when it was moved, false when there is no such dead letter
--   writes   vtq.<queue>_dlq, vtq.<queue>
--   index    primary keys
--   raises   VT001, 22023, VT004; VT007 when another message has its unique_key
CREATE OR REPLACE FUNCTION vtq.redrive(queue text, msg_id bigint, delay interval DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    unique_key text;
    holder bigint;
BEGIN
    PERFORM vtq._check_dlq(queue);
    EXECUTE format('SELECT d.unique_key FROM vtq.%I AS d WHERE d.msg_id = $1', queue || '_dlq')
    INTO unique_key USING msg_id;
    IF unique_key IS NULL THEN
        RETURN vtq._return(queue, ARRAY[msg_id], delay) > 0;
    END IF;
    LOOP
        holder := vtq._key_holder(queue, unique_key);
        IF holder IS NOT NULL THEN
            RAISE EXCEPTION 'unique_key "%" of dead letter %/% is taken by message %', unique_key, queue, msg_id, holder
                USING ERRCODE = 'VT007',
                HINT = 'Redrive it when that message is done, or purge it if that message stands for it.';
        END IF;
        BEGIN
            RETURN vtq._return(queue, ARRAY[msg_id], delay) > 0;
        EXCEPTION WHEN unique_violation THEN
            -- A sender took the key meanwhile, and has committed.
            PERFORM vtq._look_again(queue);
        END;
    END LOOP;
END;
$$;

COMMENT ON FUNCTION vtq.redrive(text, bigint, interval)
    IS 'Moves one dead letter back into its queue: same msg_id, new attempts, header vtq_redrives counted up.';

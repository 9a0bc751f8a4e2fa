-- vtq.redrive: moves one dead letter back into its queue: same id, new budget, block stripped, trip counted.
--   queue    queue name
--   msg_id   the dead letter
--   delay    due this long from now, 0 to 36500 days; default now
--   returns  true when it was moved, false when there is no such dead letter
--   writes   vtq.<queue>_dlq, vtq.<queue>
--   index    primary keys
--   raises   VT001, 22023, VT004
CREATE OR REPLACE FUNCTION vtq.redrive(queue text, msg_id bigint, delay interval DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    PERFORM vtq._check_dlq(queue);
    RETURN vtq._return(queue, ARRAY[msg_id], delay) > 0;
END;
$$;

COMMENT ON FUNCTION vtq.redrive(text, bigint, interval)
    IS 'Moves one dead letter back into its queue: same msg_id, new attempts, header vtq_redrives counted up.';

-- vtq._look_again: after a unique_violation: whether looking again can show who took the key.
--   queue    queue name
--   raises   40001 in a transaction that sees the database as it was when it began: it must start anew
CREATE OR REPLACE FUNCTION vtq._look_again(queue text)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a unique_key of queue "%" was taken since this transaction began', queue
            USING ERRCODE = '40001';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._look_again(text)
    IS 'Internal: whether looking again can show who took a unique key.';

-- vtq._wake: the trigger of a queue's table: notifies the workers that sleep, if there are any.
--   writes   nothing; NOTIFY vtq_<queue> without a payload, at most once a transaction
--   index    primary key of vtq._sleeper
-- A busy queue has no sleeper and sends no NOTIFY: each one takes a lock at commit that all of the cluster shares.
-- A worker that announces its sleep looks afterwards for transactions that were writing already
-- (vtq._doze), so a sender that has not seen the announcement is not missed. Under REPEATABLE READ a sender
-- may never see it, and so notifies always.
-- The condition is that of vtq._notify, written here again: a call would double what a send pays for it.
CREATE OR REPLACE FUNCTION vtq._wake()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    IF EXISTS (SELECT FROM vtq._sleeper AS s WHERE s.queue = TG_TABLE_NAME AND s.until > statement_timestamp())
        OR current_setting('transaction_isolation') <> 'read committed'
    THEN
        PERFORM pg_notify('vtq_' || TG_TABLE_NAME, '');
    END IF;
    RETURN NULL;
END;
$$;

COMMENT ON FUNCTION vtq._wake() IS 'Internal: the trigger of a queue''s table; notifies the workers that sleep.';

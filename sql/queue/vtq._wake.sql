-- vtq._wake: the trigger of a queue's table: notifies the workers that sleep, if there are any.
--   writes   nothing; NOTIFY vtq_<queue> without a payload, at most once a transaction
-- A busy queue has no sleeper and sends no NOTIFY: each one takes a lock at commit that all of the cluster shares.
-- A worker that announces its sleep looks afterwards for transactions that were writing already
-- (vtq._doze), so a sender that has not seen the announcement is not missed. Under REPEATABLE READ a sender
-- may never see it, and so notifies always.
CREATE OR REPLACE FUNCTION vtq._wake()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    PERFORM vtq._notify(TG_TABLE_NAME);
    RETURN NULL;
END;
$$;

COMMENT ON FUNCTION vtq._wake() IS 'Internal: the trigger of a queue''s table; notifies the workers that sleep.';

-- vtq._notify: notifies the workers that sleep on a queue, if there are any.
--   queue    queue name
--   writes   nothing; NOTIFY vtq_<queue> without a payload
--   index    primary key of vtq._sleeper
CREATE OR REPLACE FUNCTION vtq._notify(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    IF EXISTS (
            SELECT FROM vtq._sleeper AS s
            WHERE s.queue = _notify.queue AND s.until > statement_timestamp()
        )
        OR current_setting('transaction_isolation') <> 'read committed'
    THEN
        PERFORM pg_notify('vtq_' || queue, '');
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._notify(text) IS 'Internal: notifies the workers that sleep on a queue, if there are any.';

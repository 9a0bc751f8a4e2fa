-- vtq.dlq_show: one dead letter, whole.
--   queue    queue name
--   msg_id   the dead letter
--   returns  one row, or none when there is no such dead letter
--   index    primary key
--   raises   VT001, 22023, VT004
CREATE OR REPLACE FUNCTION vtq.dlq_show(queue text, msg_id bigint)
RETURNS TABLE (
    dead_lettered_at timestamptz,
    enqueued_at timestamptz,
    read_ct integer,
    headers jsonb,
    message jsonb
)
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
BEGIN
    PERFORM vtq._check_dlq(queue);
    RETURN QUERY EXECUTE format(
        'SELECT d.dead_lettered_at, d.enqueued_at, d.read_ct, d.headers, d.message FROM vtq.%I AS d WHERE d.msg_id = $1',
        queue || '_dlq'
    ) USING msg_id;
END;
$$;

COMMENT ON FUNCTION vtq.dlq_show(text, bigint) IS 'One dead letter, whole: its headers with the block that says why, and its message.';

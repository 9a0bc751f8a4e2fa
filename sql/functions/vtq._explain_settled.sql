-- vtq._explain_settled: what became of a message that is not live.
--   queue    queue name
--   msg_id   the message
--   returns  {"where", "why"} and what its table says
--   index    primary keys
CREATE OR REPLACE FUNCTION vtq._explain_settled(queue text, msg_id bigint)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    answer jsonb;
    sent_to bigint;
BEGIN
    IF to_regclass(format('vtq.%I', queue || '_dlq')) IS NOT NULL THEN
        EXECUTE format($sql$
            SELECT jsonb_build_object(
                'where', 'dead_letter',
                'why', format('it is dead since %%s: %%s', vtq._iso(d.dead_lettered_at), d.headers #>> '{vtq_dead_letter,reason}'),
                'dead_letter', d.headers -> 'vtq_dead_letter'
            )
            FROM vtq.%1$I AS d WHERE d.msg_id = $1
        $sql$, queue || '_dlq') INTO answer USING msg_id;
    END IF;
    IF answer IS NULL AND to_regclass(format('vtq.%I', queue || '_archive')) IS NOT NULL THEN
        EXECUTE format($sql$
            SELECT jsonb_build_object(
                'where', 'archive',
                'why', CASE
                    WHEN a.superseded_by IS NULL THEN format('it was done at %%s', vtq._iso(a.archived_at))
                    ELSE format('message %%s superseded it at %%s', a.superseded_by, vtq._iso(a.archived_at))
                END,
                'superseded_by', a.superseded_by,
                'attempt', a.read_ct - a.refunded_ct,
                'read_ct', a.read_ct,
                'enqueued_at', vtq._iso(a.enqueued_at)
            )
            FROM vtq.%1$I AS a WHERE a.msg_id = $1 ORDER BY a.archived_at DESC LIMIT 1
        $sql$, queue || '_archive') INTO answer USING msg_id;
    END IF;
    IF answer IS NOT NULL THEN
        RETURN answer;
    END IF;
    EXECUTE format('SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM vtq.%I', '_' || queue || '_seq')
    INTO sent_to;
    RETURN jsonb_build_object('where', 'gone', 'why', CASE
        WHEN msg_id > sent_to OR msg_id < 1 THEN format('no message of this number was sent; the last one is %s', sent_to)
        ELSE 'it was done and not kept, cancelled, purged, or sent in a transaction that did not commit'
    END);
END;
$$;

COMMENT ON FUNCTION vtq._explain_settled(text, bigint) IS 'Internal: what became of a message that is not live.';

-- vtq.explain: why a message does not run now, and what happened to it so far.
--   queue    queue name
--   msg_id   the message
--   returns  one object. where: live · dead_letter · archive · gone. For a live message: state · why, a sentence ·
--            next_at, when something changes by itself · ahead, messages in front of a ready one, counted up to 1000 ·
--            holder, who has it, since when and until when · attempt, max_attempts, read_ct · policy, each number with
--            the layer it comes from: message, queue or default. For all: attempts, the deliveries that did not succeed
--   index    primary keys, _<queue>_line
--   raises   VT001
CREATE OR REPLACE FUNCTION vtq.explain(queue text, msg_id bigint)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    at timestamptz := clock_timestamp();
    setting vtq._queue;
    m record;
    found_ct bigint;
    answer jsonb := jsonb_build_object('queue', queue, 'msg_id', msg_id);
    history jsonb;
BEGIN
    SELECT q.* INTO setting FROM vtq._queue AS q WHERE q.queue = explain.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    EXECUTE format($sql$
        SELECT r.*, d.deadline, vtq._state(
            r.ready_at, r.vt, r.read_ct, r.refunded_ct, r.started_read_ct, r.unstarted_ct,
            coalesce(r.max_attempts, $2), d.deadline, $3
        ) AS state
        FROM vtq.%1$I AS r
        CROSS JOIN LATERAL vtq._deadline(
            r.ready_at, r.vt, r.read_ct, r.refunded_ct, r.started_read_ct, r.expires_at, r.retry_until
        ) AS d (deadline)
        WHERE r.msg_id = $1
    $sql$, queue) INTO m USING msg_id, setting.max_attempts::integer, at;
    GET DIAGNOSTICS found_ct = ROW_COUNT;
    IF found_ct > 0 THEN
        answer := answer || jsonb_build_object(
            'where', 'live',
            'state', m.state,
            'why', CASE
                WHEN m.state = 'waiting' THEN vtq._waits_for(queue, setting, msg_id, m.lane, m.arrives_at, at)
                ELSE vtq._why(setting, m.state, m.ready_at, m.vt, m.deadline, m.read_ct, m.unstarted_ct, at)
            END,
            'next_at', vtq._iso(CASE m.state
                WHEN 'in_flight' THEN m.vt
                WHEN 'delayed' THEN m.ready_at
                WHEN 'retrying' THEN m.ready_at
                WHEN 'waiting' THEN m.arrives_at
            END),
            'attempt', m.read_ct - m.refunded_ct,
            'read_ct', m.read_ct,
            'enqueued_at', vtq._iso(m.enqueued_at),
            'ready_at', CASE WHEN isfinite(m.ready_at) THEN vtq._iso(m.ready_at) END,
            'vt', CASE WHEN isfinite(m.vt) THEN vtq._iso(m.vt) END,
            'group_key', m.group_key,
            'exclusive_key', m.exclusive_key,
            'unique_key', m.unique_key,
            'expires_at', vtq._iso(m.expires_at),
            'retry_until', vtq._iso(m.retry_until),
            'priority', m.priority,
            'policy', vtq._layers(setting, m.max_attempts, m.policy)
        );
        IF m.state = 'in_flight' THEN
            answer := answer || jsonb_build_object('holder', vtq._holder(m.holder, m.last_read_at, m.vt, at));
        ELSIF m.state = 'ready' THEN
            answer := answer || jsonb_build_object('ahead', vtq._ahead(queue, setting, m.priority, m.ready_at, msg_id, at));
        END IF;
    ELSE
        answer := answer || vtq._explain_settled(queue, msg_id);
    END IF;
    SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(a)) ORDER BY a.read_ct), '[]') INTO history
    FROM vtq.attempts(queue, msg_id) AS a;
    RETURN jsonb_strip_nulls(answer) || jsonb_build_object('attempts', history);
END;
$$;

COMMENT ON FUNCTION vtq.explain(text, bigint)
    IS 'Why a message does not run now, and what happened to it so far: SELECT jsonb_pretty(vtq.explain(''orders'', 7)).';

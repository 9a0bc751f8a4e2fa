-- vtq._take_unique: what becomes of a send whose unique key may be taken.
--   queue .. headers   of the new message
--   delay              how long from now it would be due; null: it has no delay
--   max_wait           how far a message that waits may be put off, from its first send
--   returns  no row while the key is free · msg_id, outcome skipped or replaced: the message that has the key, and the
--            send is done · msg_id, outcome superseded: a retry that has given its key away; the caller sends, and then
--            takes it out
--   writes   vtq.<queue>
--   index    _<queue>_unique, _taken_pk
-- Whoever only skips locks nothing. What is changed is changed only as it was seen: else look again.
CREATE OR REPLACE FUNCTION vtq._take_unique(
    queue text,
    unique_key text,
    on_conflict text,
    message jsonb,
    headers jsonb,
    delay interval,
    max_wait interval
)
RETURNS TABLE (msg_id bigint, outcome text)
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    at timestamptz;
    holder record;
    due timestamptz;
    changed_ct bigint;
BEGIN
    LOOP
        at := clock_timestamp();
        holder := NULL;
        EXECUTE format($sql$
            SELECT m.msg_id, m.read_ct, m.vt, m.ready_at, m.enqueued_at, m.unique_until, m.debounce_until,
                m.vt <> m.ready_at AND m.vt > $2 AS is_in_flight
            FROM vtq.%1$I AS m
            WHERE m.unique_key = $1 AND m.unique_key IS NOT NULL AND NOT m.is_key_free
        $sql$, queue) INTO holder USING unique_key, at;
        msg_id := holder.msg_id;
        IF msg_id IS NULL THEN
            SELECT max(t.msg_id) INTO msg_id FROM vtq._taken AS t
            WHERE t.queue = _take_unique.queue AND t.unique_key = _take_unique.unique_key AND t.until > at;
            IF msg_id IS NULL THEN
                RETURN;
            END IF;
        ELSIF holder.read_ct > 0 AND NOT holder.is_in_flight
            AND (holder.unique_until = 'started' OR on_conflict = 'replace')
        THEN
            -- What has run already is not made another message: it leaves, and the new one has a budget of its own.
            outcome := 'superseded';
            EXECUTE format(
                'UPDATE vtq.%I AS m SET is_key_free = true'
                ' WHERE m.msg_id = $1 AND m.read_ct = $2 AND m.vt = $3 AND NOT m.is_key_free', queue
            ) USING msg_id, holder.read_ct, holder.vt;
        ELSIF on_conflict = 'replace' AND NOT holder.is_in_flight THEN
            outcome := 'replaced';
            due := least(at + delay, coalesce(holder.debounce_until, holder.enqueued_at + max_wait));
            due := CASE WHEN due > at THEN due ELSE least(holder.ready_at, at) END;
            -- One that waits in a lane is due when its turn comes, which a delay puts off until it has its place.
            EXECUTE format($sql$
                UPDATE vtq.%1$I AS m
                SET message = $4, headers = $5,
                    ready_at = CASE WHEN m.ready_at < 'infinity' THEN coalesce($6, m.ready_at) ELSE m.ready_at END,
                    vt = CASE WHEN m.ready_at < 'infinity' THEN coalesce($6, m.vt) ELSE m.vt END,
                    arrives_at = CASE WHEN m.arrives_at IS NOT NULL THEN coalesce($6, m.arrives_at) END,
                    debounce_until = coalesce(m.debounce_until, m.enqueued_at + $7)
                WHERE m.msg_id = $1 AND m.read_ct = $2 AND m.vt = $3 AND NOT m.is_key_free
            $sql$, queue) USING msg_id, holder.read_ct, holder.vt, message, headers,
                CASE WHEN delay IS NOT NULL THEN due END, max_wait;
        END IF;
        IF outcome IS NOT NULL THEN
            GET DIAGNOSTICS changed_ct = ROW_COUNT;
            IF changed_ct > 0 THEN
                RETURN NEXT;
                RETURN;
            END IF;
            outcome := NULL;
            CONTINUE;
        END IF;
        EXIT;
    END LOOP;
    outcome := 'skipped';
    RETURN NEXT;
END;
$$;

COMMENT ON FUNCTION vtq._take_unique(text, text, text, jsonb, jsonb, interval, interval)
    IS 'Internal: what becomes of a send whose unique key may be taken.';

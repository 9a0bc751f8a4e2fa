-- vtq.read: leases visible messages and hides them for the visibility timeout.
--   queue               queue name
--   visibility_timeout  how long to hide them, 1 ms to 12 hours; default the queue's
--   qty                 how many at the most, 1 to 10000
--   after_ready_at, after_msg_id
--                       floors: start behind this place in the line. One element per priority level, in the
--                       order of the queue's levels; null: from the front. Only a worker's business
--   holder              a worker's number in vtq._worker. A worker says with its heartbeat which runs have started: a
--                       delivery that lapses before does not count as an attempt. Null: the read is the start
--   returns  up to qty rows in hand-out order: by level, then whichever has been ready longest.
--            (msg_id, read_ct) is the lease; attempt is 1 on the first run; timeout is the limit for this run;
--            is_suspect says that the delivery before left no outcome
--   writes   vtq.<queue> (HOT, touches no index); vtq.<queue>_attempts for a delivery that left no outcome
--   index    _<queue>_line
--   raises   VT001, 22023
-- With a floor it is one walk from there. From the front, when it comes back short, it also sweeps: readers that
-- run no worker would else never see an exhausted message leave.
CREATE OR REPLACE FUNCTION vtq.read(
    queue text,
    visibility_timeout interval DEFAULT NULL,
    qty integer DEFAULT 1,
    after_ready_at timestamptz[] DEFAULT NULL,
    after_msg_id bigint[] DEFAULT NULL,
    holder integer DEFAULT NULL
)
RETURNS TABLE (
    msg_id bigint,
    read_ct integer,
    attempt integer,
    ready_at timestamptz,
    enqueued_at timestamptz,
    last_read_at timestamptz,
    vt timestamptz,
    headers jsonb,
    message jsonb,
    priority smallint,
    timeout interval,
    is_suspect boolean
)
LANGUAGE plpgsql
SET search_path = pg_catalog
-- The plan must not hang on what the statistics say of a table that is empty now and full in a second.
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    -- One instant for the call: clock_timestamp() in a condition is volatile and cannot use an index.
    started timestamptz := clock_timestamp();
    setting vtq._queue;
    hidden_until timestamptz;
    wanted integer := qty;
    got integer;
BEGIN
    SELECT q.* INTO setting FROM vtq._queue AS q WHERE q.queue = read.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    PERFORM vtq._check_qty(qty);
    hidden_until := started + coalesce(
        vtq._check_length('visibility_timeout', visibility_timeout, interval '1 ms', interval '12 hours'),
        setting.visibility_timeout
    );
    IF setting.paused_until > started THEN
        RETURN;
    END IF;

    FOR level IN 1..cardinality(setting.priorities) LOOP
        RETURN QUERY EXECUTE format($sql$
            WITH picked AS MATERIALIZED (
                SELECT m.ctid AS tid, m.msg_id, m.read_ct, m.refunded_ct, m.last_read_at, m.ready_at, m.vt,
                    m.started_read_ct
                FROM vtq.%1$I AS m
                WHERE m.priority = $1
                    AND m.ready_at <= $2
                    AND (m.ready_at, m.msg_id) > ($3, $4)
                    AND m.vt <= $2
                    AND vtq._state(
                        m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.unstarted_ct,
                        coalesce(m.max_attempts, $5), m.expires_at, $2
                    ) = 'ready'
                ORDER BY m.ready_at, m.msg_id
                LIMIT $6
                FOR UPDATE SKIP LOCKED
            ),
            leased AS (
                UPDATE vtq.%1$I AS m
                SET vt = $7,
                    read_ct = m.read_ct + 1,
                    last_read_at = $2,
                    holder = $9,
                    started_read_ct = CASE WHEN $9 IS NULL THEN m.read_ct + 1 ELSE m.started_read_ct END,
                    -- A lease that lapsed before its run had started is refunded, and counted for itself.
                    refunded_ct = m.refunded_ct + (m.vt <> m.ready_at AND m.started_read_ct < m.read_ct)::integer,
                    unstarted_ct = m.unstarted_ct + (m.vt <> m.ready_at AND m.started_read_ct < m.read_ct)::integer,
                    is_suspect = m.is_suspect OR (m.vt <> m.ready_at AND m.read_ct > 0)
                WHERE m.ctid = ANY (ARRAY(SELECT p.tid FROM picked AS p))
                RETURNING m.msg_id, m.read_ct, m.read_ct - m.refunded_ct AS attempt, m.ready_at, m.enqueued_at,
                    m.last_read_at, m.vt, m.headers, m.message, m.priority,
                    CASE WHEN m.policy IS NULL THEN $8 ELSE vtq._own_timeout(m.policy, $8) END AS timeout,
                    m.is_suspect
            ),
            -- A lapsed lease that nobody settled: the worker died without a word. Whoever delivers next writes it down.
            abandoned AS (
                INSERT INTO vtq.%2$I AS a (msg_id, read_ct, attempt, outcome, started_at, ended_at, vt)
                SELECT p.msg_id, p.read_ct, p.read_ct - p.refunded_ct,
                    CASE WHEN p.started_read_ct < p.read_ct THEN 'never_started' ELSE 'abandoned' END,
                    p.last_read_at, p.vt, $2
                FROM picked AS p
                WHERE p.read_ct > 0 AND p.vt <> p.ready_at
                -- A sweep may have written it down already: as never started, when its worker had not said so yet.
                ON CONFLICT (msg_id, read_ct) DO UPDATE
                SET outcome = excluded.outcome, ended_at = excluded.ended_at, vt = excluded.vt
                WHERE a.outcome = 'never_started' AND excluded.outcome = 'abandoned'
            )
            SELECT l.msg_id, l.read_ct, l.attempt, l.ready_at, l.enqueued_at, l.last_read_at, l.vt, l.headers,
                l.message, l.priority, l.timeout, l.is_suspect
            FROM leased AS l
            ORDER BY l.ready_at, l.msg_id
        $sql$, queue, queue || '_attempts')
        USING setting.priorities[level], started, coalesce(after_ready_at[level], '-infinity'),
            coalesce(after_msg_id[level], 0), setting.max_attempts::integer, wanted, hidden_until, setting.timeout, holder;
        GET DIAGNOSTICS got = ROW_COUNT;
        wanted := wanted - got;
        EXIT WHEN wanted = 0;
    END LOOP;

    IF wanted > 0 AND after_ready_at IS NULL THEN
        PERFORM vtq.sweep(queue, 100);
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq.read(text, interval, integer, timestamptz[], bigint[], integer)
    IS 'Leases up to qty visible messages and hides them for the visibility timeout: SELECT * FROM vtq.read(''orders'', ''30 s'', 10).';

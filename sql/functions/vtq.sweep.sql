-- vtq.sweep: dead-letters the exhausted and the expired, and records deliveries that left no outcome.
--   queue    queue name
--   qty      how many messages at the most, 1 to 10000
--   returns  dead: moved to the dead letters · abandoned: deliveries recorded
--   writes   vtq.<queue>, vtq.<queue>_dlq, vtq.<queue>_attempts
--   index    _<queue>_line
--   raises   VT001, 22023
-- It looks at the front of each level, 10000 places deep. What was ever claimed is at the front, and what is doomed
-- further back gets there; so a backlog of a million costs it no more than one of ten thousand.
CREATE OR REPLACE FUNCTION vtq.sweep(queue text, qty integer DEFAULT 1000, OUT dead bigint, OUT abandoned bigint)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    started timestamptz := clock_timestamp();
    setting vtq._queue;
    level smallint;
    ids bigint[];
    reasons text[];
    recorded bigint;
    taken bigint;
    wanted bigint := qty;
BEGIN
    dead := 0;
    abandoned := 0;
    SELECT q.* INTO setting FROM vtq._queue AS q WHERE q.queue = sweep.queue;
    IF NOT FOUND THEN
        PERFORM vtq._no_queue(queue);
    END IF;
    PERFORM vtq._check_qty(qty);

    FOREACH level IN ARRAY setting.priorities LOOP
        EXIT WHEN wanted <= 0;
        EXECUTE format($sql$
            WITH front AS MATERIALIZED (
                SELECT m.ctid AS tid, m.msg_id, m.read_ct, m.vt <> m.ready_at AS is_leased,
                    vtq._state(
                        m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.unstarted_ct,
                        coalesce(m.max_attempts, $3),
                        vtq._deadline(
                            m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.expires_at, m.retry_until
                        ), $2
                    ) AS state
                FROM vtq.%1$I AS m
                WHERE m.priority = $1 AND m.ready_at <= $2
                ORDER BY m.ready_at, m.msg_id
                LIMIT 10000
            ),
            found AS MATERIALIZED (
                SELECT f.tid
                FROM front AS f
                WHERE f.state IN ('exhausted', 'expired')
                    OR (
                        f.state = 'ready' AND f.read_ct > 0 AND f.is_leased
                        AND NOT EXISTS (
                            SELECT FROM vtq.%2$I AS a WHERE a.msg_id = f.msg_id AND a.read_ct = f.read_ct
                        )
                    )
                LIMIT $4
            ),
            locked AS MATERIALIZED (
                SELECT m.msg_id, m.read_ct, m.refunded_ct, m.last_read_at, m.vt,
                    m.read_ct > 0 AND m.vt <> m.ready_at AS has_lapsed, m.started_read_ct < m.read_ct AS is_unstarted,
                    vtq._state(
                        m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.unstarted_ct,
                        coalesce(m.max_attempts, $3),
                        vtq._deadline(
                            m.ready_at, m.vt, m.read_ct, m.refunded_ct, m.started_read_ct, m.expires_at, m.retry_until
                        ), $2
                    ) AS state
                FROM vtq.%1$I AS m
                WHERE m.ctid = ANY (ARRAY(SELECT f.tid FROM found AS f))
                    AND m.ready_at <= $2 AND m.vt <= $2
                FOR UPDATE SKIP LOCKED
            ),
            recorded AS (
                INSERT INTO vtq.%2$I AS a (msg_id, read_ct, attempt, outcome, started_at, ended_at, vt)
                SELECT l.msg_id, l.read_ct, l.read_ct - l.refunded_ct,
                    CASE WHEN l.is_unstarted THEN 'never_started' ELSE 'abandoned' END, l.last_read_at, l.vt,
                    CASE WHEN l.state = 'ready' THEN l.vt END
                FROM locked AS l
                WHERE l.has_lapsed
                -- Written down before as never started, when its worker had not said so yet.
                ON CONFLICT (msg_id, read_ct) DO UPDATE
                SET outcome = excluded.outcome, ended_at = excluded.ended_at, vt = excluded.vt
                WHERE a.outcome = 'never_started' AND excluded.outcome = 'abandoned'
                RETURNING 1
            ),
            -- So that whoever settles it after all looks for that row.
            marked AS (
                UPDATE vtq.%1$I AS m
                SET is_suspect = true
                FROM locked AS l
                WHERE l.has_lapsed AND l.state = 'ready' AND m.msg_id = l.msg_id
            )
            SELECT array_agg(l.msg_id ORDER BY l.msg_id) FILTER (WHERE l.state <> 'ready'),
                array_agg(CASE
                    WHEN l.state = 'expired' THEN 'expired'
                    WHEN l.has_lapsed AND l.is_unstarted THEN 'never_started'
                    WHEN l.has_lapsed THEN 'worker_died'
                    ELSE 'attempts_exhausted'
                END ORDER BY l.msg_id) FILTER (WHERE l.state <> 'ready'),
                (SELECT count(*) FROM recorded),
                count(*)
            FROM locked AS l
        $sql$, queue, queue || '_attempts')
        INTO ids, reasons, recorded, taken
        USING level, started, setting.max_attempts::integer, wanted;
        wanted := wanted - taken;
        abandoned := abandoned + recorded;
        CONTINUE WHEN ids IS NULL;
        IF to_regclass(format('vtq.%I', queue || '_dlq')) IS NULL THEN
            PERFORM vtq._hold_back(queue, ids);
            CONTINUE;
        END IF;
        PERFORM vtq._bury(queue, ids, reasons, 'sweep');
        dead := dead + cardinality(ids);
    END LOOP;
    PERFORM vtq._sweep_superseded(queue, started, qty);
END;
$$;

COMMENT ON FUNCTION vtq.sweep(text, integer)
    IS 'Dead-letters the exhausted and the expired, and records deliveries that left no outcome.';

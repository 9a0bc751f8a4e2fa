-- vtq.redrive_all: moves dead letters back into their queue, the oldest first, up to a number.
--   queue    queue name
--   qty      how many at the most in this call, 1 to 10000. Call again until it answers 0: batches keep the
--            transactions short, and whoever stops half-way can go on later
--   filter   {"reason", "error_class", "error_code", "dead_before", "dead_after"}, any of them; dead_before and
--            dead_after are instants. Give dead_before = the start of a loop, so that it ends although what it
--            redrives may die again
--   returns  how many were moved. Letters whose unique_key another message has stay; the last
--            call says how many in a NOTICE, and vtq.redrive_taken at any time
--   writes   vtq.<queue>_dlq, vtq.<queue>
--   index    _<queue>_dlq_age
--   raises   VT001, 22023, VT004
CREATE OR REPLACE FUNCTION vtq.redrive_all(queue text, qty integer DEFAULT 1000, filter jsonb DEFAULT '{}')
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
    wanted record;
    ids bigint[];
    moved_ct bigint;
    taken_ct bigint;
BEGIN
    wanted := vtq._letter_filter(filter);
    PERFORM vtq._check_dlq(queue);
    PERFORM vtq._check_qty(qty);
    EXECUTE format($sql$
        WITH picked AS MATERIALIZED (
            SELECT d.msg_id
            FROM vtq.%1$I AS d
            WHERE d.dead_lettered_at < $1 AND d.dead_lettered_at > $2 AND d.headers -> 'vtq_dead_letter' @> $3
                AND CASE WHEN d.unique_key IS NOT NULL THEN vtq._key_holder($5, d.unique_key) IS NULL ELSE true END
            ORDER BY d.dead_lettered_at, d.msg_id
            LIMIT $4
            FOR UPDATE SKIP LOCKED
        )
        SELECT array_agg(p.msg_id) FROM picked AS p
    $sql$, queue || '_dlq') INTO ids USING wanted.dead_before, wanted.dead_after, wanted.block, qty, queue;
    LOOP
        BEGIN
            moved_ct := vtq._return(queue, vtq._untaken(queue, ids), NULL);
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            -- A sender took a key meanwhile, and has committed: that letter stays, the others go.
            PERFORM vtq._look_again(queue);
        END;
    END LOOP;
    IF moved_ct < qty THEN
        taken_ct := vtq.redrive_taken(queue, filter);
        IF taken_ct > 0 THEN
            RAISE NOTICE '% dead letters of queue "%" stay: their unique_key is taken', taken_ct, queue;
        END IF;
    END IF;
    RETURN moved_ct;
END;
$$;

COMMENT ON FUNCTION vtq.redrive_all(text, integer, jsonb)
    IS 'Moves up to qty dead letters back into their queue, the oldest first; call it until it answers 0.';

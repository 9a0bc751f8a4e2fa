-- vtq.dead_letter: moves a message that is held straight to the dead letters.
--   queue, msg_id, read_ct   the lease
--   reason   permanent_failure (default) · undecodable · expired · by_operator
--   error    as in vtq.fail
--   holder   a worker's number: the lease must be its own. A crash of the server may undo a claim that a
--            worker has begun to run; whoever reads next gets the same read_ct, and only this tells them
--            apart. Null: not looked at
--   returns  'dead', or 'stale' when the lease is not held. The same call again gets the same answer
--   writes   vtq.<queue>, vtq.<queue>_attempts, vtq.<queue>_dlq
--   index    primary key
--   raises   VT001, 22023, VT004
CREATE OR REPLACE FUNCTION vtq.dead_letter(
    queue text,
    msg_id bigint,
    read_ct integer,
    reason text DEFAULT 'permanent_failure',
    error jsonb DEFAULT NULL,
    holder integer DEFAULT NULL
)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    lease record;
    how text := CASE reason
        WHEN 'permanent_failure' THEN 'permanent'
        WHEN 'undecodable' THEN 'undecodable'
        WHEN 'expired' THEN 'expired'
        WHEN 'by_operator' THEN 'by_operator'
    END;
BEGIN
    IF how IS NULL THEN
        RAISE EXCEPTION 'reason % is not known: give permanent_failure, undecodable, expired or by_operator',
            coalesce('"' || left(reason, 80) || '"', 'null') USING ERRCODE = '22023';
    END IF;
    SELECT l.* INTO lease FROM vtq._lock_lease(queue, msg_id, read_ct, holder) AS l;
    IF NOT FOUND THEN
        RETURN (vtq._settled_before(queue, msg_id, read_ct, 'dead_letter')).outcome;
    END IF;
    PERFORM vtq._record(queue, msg_id, read_ct, lease.attempt, lease.started, how, NULL, NULL, error);
    PERFORM vtq._bury(
        queue, ARRAY[msg_id], ARRAY[reason], CASE reason WHEN 'by_operator' THEN 'operator' ELSE 'worker' END
    );
    RETURN 'dead';
END;
$$;

COMMENT ON FUNCTION vtq.dead_letter(text, bigint, integer, text, jsonb, integer)
    IS 'Moves a message that is held straight to the dead letters.';

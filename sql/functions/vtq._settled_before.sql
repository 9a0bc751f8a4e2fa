-- vtq._settled_before: what a repeated settling call is to be told.
--   queue, msg_id, read_ct   the lease of the call
--   asked                    the kind of call: 'fail', 'defer' or 'dead_letter'
--   returns  outcome, vt as the first call was told them; 'stale' when no such call was made
--   index    primary key of vtq.<queue>_attempts
-- A caller whose reply was lost calls again. The attempt's row is its receipt.
CREATE OR REPLACE FUNCTION vtq._settled_before(
    queue text,
    msg_id bigint,
    read_ct integer,
    asked text,
    OUT outcome text,
    OUT vt timestamptz
)
RETURNS record
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
SET enable_seqscan = off
AS $$
DECLARE
    recorded record;
BEGIN
    EXECUTE format(
        'SELECT a.outcome, a.vt, a.reason FROM vtq.%I AS a WHERE a.msg_id = $1 AND a.read_ct = $2', queue || '_attempts'
    ) INTO recorded USING msg_id, read_ct;
    outcome := CASE
        WHEN asked = 'fail' AND recorded.outcome IN ('failed', 'panicked', 'timed_out')
            THEN CASE
                WHEN recorded.vt IS NOT NULL THEN 'retry'
                -- Nobody else gives a failure a reason; see vtq._supersede.
                WHEN recorded.reason IS NOT NULL THEN 'superseded'
                ELSE 'dead'
            END
        WHEN asked = 'defer' AND recorded.outcome = 'deferred'
            THEN CASE WHEN recorded.vt IS NULL THEN 'superseded' ELSE 'deferred' END
        WHEN asked = 'defer' AND recorded.outcome = 'expired' THEN 'dead'
        WHEN asked = 'dead_letter' AND recorded.outcome IN ('permanent', 'undecodable', 'expired', 'by_operator')
            THEN 'dead'
        ELSE 'stale'
    END;
    vt := CASE WHEN outcome IN ('retry', 'deferred') THEN recorded.vt END;
END;
$$;

COMMENT ON FUNCTION vtq._settled_before(text, bigint, integer, text)
    IS 'Internal: what a repeated settling call is to be told.';

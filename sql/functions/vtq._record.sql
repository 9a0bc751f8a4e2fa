-- vtq._record: writes down a delivery that did not succeed.
--   queue .. read_ct   the delivery
--   attempt, started   the attempt it was, and when it began
--   outcome            how it ended; see the check on vtq.<queue>_attempts
--   due                when the message is due again; null: no further run
--   reason             the reason a holder gave
--   error              as given to vtq.fail
--   writes   vtq.<queue>_attempts
-- A row that is there already says what came first, "abandoned" by a lapse; the true outcome replaces it.
CREATE OR REPLACE FUNCTION vtq._record(
    queue text,
    msg_id bigint,
    read_ct integer,
    attempt integer,
    started timestamptz,
    outcome text,
    due timestamptz,
    reason text,
    error jsonb
)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
DECLARE
    cleaned record := vtq._clean_error(error);
BEGIN
    EXECUTE format($sql$
        INSERT INTO vtq.%1$I AS a (
            msg_id, read_ct, attempt, outcome, started_at, ended_at, vt, reason,
            error_class, error_code, error_message, error_detail, worker
        )
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (msg_id, read_ct) DO UPDATE
        SET outcome = excluded.outcome, ended_at = excluded.ended_at, vt = excluded.vt, reason = excluded.reason,
            error_class = excluded.error_class, error_code = excluded.error_code,
            error_message = excluded.error_message, error_detail = excluded.error_detail, worker = excluded.worker
    $sql$, queue || '_attempts')
    USING msg_id, read_ct, attempt, outcome, started, clock_timestamp(), due, vtq._cut(reason, 1000),
        cleaned.class, cleaned.code, cleaned.message, cleaned.detail, cleaned.worker;
END;
$$;

COMMENT ON FUNCTION vtq._record(text, bigint, integer, integer, timestamptz, text, timestamptz, text, jsonb)
    IS 'Internal: writes down a delivery that did not succeed.';

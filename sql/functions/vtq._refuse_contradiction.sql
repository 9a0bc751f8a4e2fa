-- vtq._refuse_contradiction: refuses options of a queue that contradict each other.
--   queue    queue name, for the hint
--   options  what is to be set on the queue, whole
--   raises   22023 naming both options and their values
CREATE OR REPLACE FUNCTION vtq._refuse_contradiction(queue text, options jsonb)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = pg_catalog
AS $$
DECLARE
    found text := (SELECT l.says FROM vtq._lint_options(options) AS l WHERE l.severity = 'error' LIMIT 1);
BEGIN
    IF found IS NOT NULL THEN
        RAISE EXCEPTION 'options of queue "%" contradict each other: %', queue, found USING ERRCODE = '22023';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._refuse_contradiction(text, jsonb) IS 'Internal: refuses options of a queue that contradict each other.';

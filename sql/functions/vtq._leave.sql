-- vtq._leave: a worker that stops cleanly takes its row and its announcement with it.
--   worker_id   its row in vtq._worker
--   writes   vtq._worker, vtq._sleeper
CREATE OR REPLACE FUNCTION vtq._leave(worker_id text)
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog
AS $$
    DELETE FROM vtq._sleeper AS s WHERE s.worker_id = $1;
    DELETE FROM vtq._worker AS w WHERE w.worker_id = $1;
$$;

COMMENT ON FUNCTION vtq._leave(text) IS 'Internal: a worker that stops cleanly takes its rows with it.';

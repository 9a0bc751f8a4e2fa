-- vtq._rise: a worker that slept takes back its announcement.
--   worker_id   its row in vtq._worker
--   writes   vtq._sleeper
CREATE OR REPLACE FUNCTION vtq._rise(worker_id text)
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog
AS $$
    DELETE FROM vtq._sleeper AS s WHERE s.worker_id = $1
$$;

COMMENT ON FUNCTION vtq._rise(text) IS 'Internal: a worker that slept takes back its announcement.';

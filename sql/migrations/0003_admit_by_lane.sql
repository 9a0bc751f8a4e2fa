-- 0003 admit_by_lane: queues that are there already get the index by which lanes take turns at being admitted, and the
-- functions whose answers have grown make room for their successors. New queues are built with the index.
DO $$
DECLARE
    queue text;
BEGIN
    FOR queue IN SELECT q.queue FROM vtq._queue AS q ORDER BY q.queue LOOP
        EXECUTE format(
            'CREATE INDEX IF NOT EXISTS %I ON vtq.%I (lane, arrives_at, msg_id) WHERE arrives_at IS NOT NULL',
            '_' || queue || '_arriving', queue
        );
    END LOOP;
END;
$$;
DROP FUNCTION IF EXISTS vtq._beat(text, text, integer, text, text[], interval, integer, text);

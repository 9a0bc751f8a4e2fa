-- vtq._create_archive: builds the table of a queue's settled messages, partitioned by day.
--   queue    queue name, checked
--   writes   the table vtq.<queue>_archive; its partitions come from vtq._archive_ahead
-- The only index leads with msg_id, which rises with the inserts: the cheapest kind to keep.
CREATE OR REPLACE FUNCTION vtq._create_archive(queue text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format($sql$
        CREATE TABLE vtq.%1$I (
            msg_id bigint NOT NULL,
            archived_at timestamptz NOT NULL,
            enqueued_at timestamptz NOT NULL,
            last_read_at timestamptz,
            read_ct integer NOT NULL,
            refunded_ct integer NOT NULL,
            priority smallint NOT NULL,
            unique_key text,
            group_key text,
            headers jsonb,
            message jsonb NOT NULL,
            superseded_by bigint,
            CONSTRAINT %2$I PRIMARY KEY (msg_id, archived_at)
        )
        PARTITION BY RANGE (archived_at);
        COMMENT ON TABLE vtq.%1$I IS 'Settled messages of the queue, by day (UTC); days past archive_retention are dropped.';
        COMMENT ON COLUMN vtq.%1$I.superseded_by IS 'The newer copy that it gave way to; null: it was done.'
    $sql$, queue || '_archive', '_' || queue || '_archive_pkey');
END;
$$;

COMMENT ON FUNCTION vtq._create_archive(text) IS 'Internal: builds the table of a queue''s settled messages.';

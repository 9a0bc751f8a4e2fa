-- vtq._check_leases: refuses two arrays that are not leases paired by position.
--   msg_ids, read_cts   as given to a settling verb
--   raises   22023 with both lengths
CREATE OR REPLACE FUNCTION vtq._check_leases(msg_ids bigint[], read_cts integer[])
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog
AS $$
BEGIN
    -- A bare msg_id is no lease: without its read_ct a late worker would settle what another one holds.
    IF msg_ids IS NULL OR read_cts IS NULL OR cardinality(msg_ids) <> cardinality(read_cts) THEN
        RAISE EXCEPTION 'msg_ids has % elements and read_cts %: they are leases, paired by position',
            coalesce(cardinality(msg_ids)::text, 'null'), coalesce(cardinality(read_cts)::text, 'null')
            USING ERRCODE = '22023';
    END IF;
END;
$$;

COMMENT ON FUNCTION vtq._check_leases(bigint[], integer[]) IS 'Internal: refuses leases that are not paired.';

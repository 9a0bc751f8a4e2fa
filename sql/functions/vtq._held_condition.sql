-- vtq._held_condition: the condition by which a queue's own functions find the rows whose leases they were given.
--   returns  SQL about a row m, a CTE lease with the arrays msg_ids and read_cts, paired and in order of msg_id and
--            read_ct, and a variable reader: the worker's number, or null
-- Text, since a function called for each row would cost more than what it looks at.
CREATE OR REPLACE FUNCTION vtq._held_condition()
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog
AS $$
    SELECT $sql$m.msg_id = ANY ((SELECT l.msg_ids FROM lease AS l)::bigint[])
                        AND (
                            m.read_ct = (SELECT l.read_cts FROM lease AS l)[
                                width_bucket(m.msg_id, (SELECT l.msg_ids FROM lease AS l))
                            ]
                            -- That was the last pair of this msg_id; one before it may be the lease.
                            OR m.read_ct = ANY ((SELECT l.read_cts FROM lease AS l)[
                                width_bucket(m.msg_id - 1, (SELECT l.msg_ids FROM lease AS l)) + 1
                                :width_bucket(m.msg_id, (SELECT l.msg_ids FROM lease AS l))
                            ])
                        )
                        AND m.read_ct > 0 AND m.vt <> m.ready_at AND (m.holder = reader OR reader IS NULL)$sql$
$$;

COMMENT ON FUNCTION vtq._held_condition()
    IS 'Internal: the condition by which a queue''s own functions find the rows whose leases they were given.';

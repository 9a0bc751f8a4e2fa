-- 0001 create_catalogue: the schema, then every table of sql/schema/ in the order of crates/vtq/src/sql.rs.
-- Nothing is open to PUBLIC: a role gets what it is granted.
CREATE SCHEMA vtq;
COMMENT ON SCHEMA vtq IS 'vtq: message queues built on visibility timeouts. Start with vtq.create_queue(''orders'').';

//! A message queue inside PostgreSQL.

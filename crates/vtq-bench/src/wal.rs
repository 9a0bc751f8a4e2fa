//! How much WAL the server has written.

use anyhow::Result;
use tokio_postgres::Client;

/// The WAL position in bytes. The whole cluster writes it, and only the peer in turn is at work.
pub(crate) async fn position(client: &Client) -> Result<u64> {
    let row = client
        .query_one("SELECT (pg_catalog.pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint", &[])
        .await?;
    Ok(u64::try_from(row.get::<_, i64>(0))?)
}

//! The forgotten transaction: a snapshot held open, so that vacuum may remove nothing that died since.

use anyhow::Context as _;
use tokio_postgres::Client;
use vtq::Vtq;

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Snapshot(Client);

impl Snapshot {
    /// Takes it, on a connection of its own.
    pub(super) async fn hold(vtq: &Vtq) -> anyhow::Result<Self> {
        let (client, _notifications) = vtq.dedicated().await?.spawn();
        // The first query takes the snapshot. It reads no table: a lock would keep compaction away too.
        let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                   SET LOCAL idle_in_transaction_session_timeout = 0; SELECT 1";
        client.batch_execute(sql).await.context("hold a snapshot")?;
        Ok(Self(client))
    }

    /// Tells whether the server has let it be until now.
    pub(super) fn is_held(&self) -> bool {
        !self.0.is_closed()
    }
}

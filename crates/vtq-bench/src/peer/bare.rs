//! A bare DELETE of what is next, without any visibility timeout: a ceiling, not a queue.
//!
//! The statement that many tutorials give for a queue in PostgreSQL, with ctid instead of a join by key. A message is
//! gone before it is handled: a consumer that dies loses its batch.

use anyhow::Result;
use tokio_postgres::{Client, Statement};

use crate::client_loop::{self, Taken, Verbs};
use crate::cluster::connect;
use crate::peer::OnAck;

/// The statements of a poller.
#[derive(Debug)]
pub(crate) struct Sql {
    client: Client,
    take: Statement,
}

pub(super) async fn install(url: &str) -> Result<()> {
    let table =
        "CREATE TABLE bench (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, message jsonb NOT NULL)";
    Ok(connect(url).await?.batch_execute(table).await?)
}

impl Verbs for Sql {
    const SEND: &'static str =
        "INSERT INTO bench (message) SELECT m FROM unnest($1::jsonb[]) AS m RETURNING id";

    async fn prepare(client: Client, _on_ack: OnAck, _is_patient: bool) -> Result<Self> {
        let take = client
            .prepare(
                "DELETE FROM bench WHERE ctid = ANY (ARRAY( \
                 SELECT ctid FROM bench ORDER BY id LIMIT $1::integer FOR UPDATE SKIP LOCKED)) \
                 RETURNING id, message",
            )
            .await?;
        Ok(Self { client, take })
    }

    async fn read(&mut self, qty: i32) -> Result<Vec<Taken>> {
        let rows = self.client.query(&self.take, &[&qty]).await?;
        rows.iter().map(|row| client_loop::taken(row, "id", None)).collect()
    }

    async fn settle(&mut self, _taken: &[(i64, i32)]) -> Result<()> {
        Ok(())
    }
}

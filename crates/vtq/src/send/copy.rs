//! Sending by COPY: for more messages than fit into one call.

use std::pin::pin;

use serde_json::{Map, Value};
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::outgoing::Outgoing;
use crate::admin;
use crate::error::{Error, Result};
use crate::name::QueueName;
use crate::sql;
use crate::wire::Json;

/// Copies messages into a queue's table, all or none. Returns how many.
pub(crate) async fn copy(
    client: &Client,
    queue: &QueueName,
    messages: impl IntoIterator<Item = Outgoing>,
) -> Result<u64> {
    let what = format!("copy messages into queue `{queue}`");
    // Refuses a queue that is not there, which COPY would call a relation.
    let level = usual_level(&admin::options(client, queue).await?);
    let db = |error: tokio_postgres::Error| Error::db(&what, &error);
    let sink = client.copy_in(&sql::copy(queue.as_str())).await.map_err(db)?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT2, Type::JSONB, Type::JSONB]));
    for (index, message) in messages.into_iter().enumerate() {
        check(&message).map_err(|error| error.at(index))?;
        let headers = message.headers.as_deref().map(Json);
        let row: [&(dyn ToSql + Sync); 3] = [&level, &headers, &Json(&message.body)];
        writer.as_mut().write(&row).await.map_err(db)?;
    }
    writer.finish().await.map_err(db)
}

/// The level of a send that names none.
fn usual_level(options: &Map<String, Value>) -> i16 {
    let levels: Vec<i16> = options
        .get("priorities")
        .and_then(Value::as_array)
        .map(|levels| levels.iter().filter_map(|level| level.as_i64()?.try_into().ok()).collect())
        .unwrap_or_default();
    if levels.contains(&0) { 0 } else { levels.last().copied().unwrap_or(0) }
}

/// Refuses what the checks of a send would refuse, which COPY goes past.
fn check(message: &Outgoing) -> Result<()> {
    let keys = &message.keys;
    if keys.unique.is_some() || keys.group.is_some() || keys.exclusive.is_some() {
        return Err(Error::invalid(
            "a message with a key cannot be copied: send it, which looks whether the key is taken",
        ));
    }
    let Some(headers) = message.headers.as_deref().filter(|headers| headers.contains("vtq_")) else {
        return Ok(());
    };
    let headers: Map<String, Value> =
        serde_json::from_str(headers).map_err(|_| Error::invalid("headers must be an object"))?;
    match headers.keys().find(|key| key.starts_with("vtq_")) {
        Some(key) => {
            Err(Error::invalid(format!("header \"{key}\": keys that begin with vtq_ are vtq's own")))
        }
        None => Ok(()),
    }
}

//! One statement on a connection, unnamed: a transaction pooler may give the next one another session.

use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{GenericClient, Row};

use crate::error::{Error, Result};

/// A parameter with its type, as `query_typed` takes it.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// Runs a statement; `what` completes "cannot ..." should it fail.
pub(crate) async fn rows<C: GenericClient>(
    client: &C,
    what: &str,
    statement: &str,
    params: &[Param<'_>],
) -> Result<Vec<Row>> {
    client.query_typed(statement, params).await.map_err(|error| Error::db(what, &error))
}

/// Runs a queue's own function. Where there is none, the verb says why: its sentences tell a queue that does not exist
/// from one without its functions.
pub(crate) async fn own_rows<C: GenericClient>(
    client: &C,
    what: &str,
    own: &str,
    verb: &str,
    params: &[Param<'_>],
) -> Result<Vec<Row>> {
    match rows(client, what, own, params).await {
        Err(error) if error.is_missing_function() => match rows(client, what, verb, params).await {
            Err(after) if after.is_in_failed_transaction() => Err(error.without_queue(what)),
            answer => answer,
        },
        answer => answer,
    }
}

/// Runs a queue's own function that answers one column; see [`own_rows`].
pub(crate) async fn own_values<C: GenericClient, T>(
    client: &C,
    what: &str,
    own: &str,
    verb: &str,
    params: &[Param<'_>],
) -> Result<Vec<T>>
where
    T: for<'a> FromSql<'a>,
{
    own_rows(client, what, own, verb, params).await?.iter().map(|row| column(row, 0, what)).collect()
}

/// Runs a statement that answers one row.
pub(crate) async fn row<C: GenericClient>(
    client: &C,
    what: &str,
    statement: &str,
    params: &[Param<'_>],
) -> Result<Row> {
    client.query_typed_one(statement, params).await.map_err(|error| Error::db(what, &error))
}

/// Runs a statement that answers one value.
pub(crate) async fn value<C: GenericClient, T>(
    client: &C,
    what: &str,
    statement: &str,
    params: &[Param<'_>],
) -> Result<T>
where
    T: for<'a> FromSql<'a>,
{
    column(&row(client, what, statement, params).await?, 0, what)
}

/// Runs a statement that answers one column.
pub(crate) async fn values<C: GenericClient, T>(
    client: &C,
    what: &str,
    statement: &str,
    params: &[Param<'_>],
) -> Result<Vec<T>>
where
    T: for<'a> FromSql<'a>,
{
    rows(client, what, statement, params).await?.iter().map(|row| column(row, 0, what)).collect()
}

/// Takes one column of a row.
pub(crate) fn column<T>(row: &Row, index: usize, what: &str) -> Result<T>
where
    T: for<'a> FromSql<'a>,
{
    row.try_get(index).map_err(|error| Error::db(what, &error))
}

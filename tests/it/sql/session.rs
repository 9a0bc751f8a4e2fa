//! A session of a test's own database, and the shortest way to ask it something.

use std::future::poll_fn;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{AsyncMessage, Client, NoTls};
use vtq_tests::TestDb;

/// One connection; the database goes with the last of its sessions. SQL is passed as text with its values in it.
pub(crate) struct Session {
    pub(crate) client: Client,
    db: Arc<TestDb>,
}

impl Session {
    /// A session in a database with vtq and without a queue.
    pub(crate) async fn new() -> Self {
        Self::of(TestDb::new().await).await
    }

    /// A session in a database with queue `q`.
    pub(crate) async fn with_queue(options: &str) -> Self {
        let session = Self::new().await;
        session.client.execute("SELECT vtq.create_queue('q', $1::text::jsonb)", &[&options]).await.unwrap();
        session
    }

    /// A session in an empty database.
    pub(crate) async fn empty() -> Self {
        Self::of(TestDb::empty().await).await
    }

    async fn of(db: TestDb) -> Self {
        Self { client: db.client().await, db: Arc::new(db) }
    }

    /// A second session in the same database.
    pub(crate) async fn another(&self) -> Self {
        Self { client: self.db.client().await, db: self.db.clone() }
    }

    /// A session whose notices and notifications arrive at the receiver.
    pub(crate) async fn overheard(&self) -> (Self, UnboundedReceiver<AsyncMessage>) {
        let (client, mut connection) = tokio_postgres::connect(self.db.url(), NoTls).await.unwrap();
        let (heard, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                let _ = heard.send(message);
            }
        });
        (Self { client, db: self.db.clone() }, receiver)
    }

    /// The name of the database, which no other test has.
    pub(crate) fn database(&self) -> &str {
        self.db.name()
    }

    /// Runs statements.
    pub(crate) async fn run(&self, sql: &str) {
        if let Err(error) = self.client.batch_execute(sql).await {
            panic!("{sql}\n{error:?}");
        }
    }

    /// The one value that a query answers.
    pub(crate) async fn value<T: FromSqlOwned>(&self, sql: &str) -> T {
        match self.client.query_one(sql, &[]).await {
            Ok(row) => row.get(0),
            Err(error) => panic!("{sql}\n{error:?}"),
        }
    }

    /// The first column of all rows.
    pub(crate) async fn values<T: FromSqlOwned>(&self, sql: &str) -> Vec<T> {
        match self.client.query(sql, &[]).await {
            Ok(rows) => rows.iter().map(|row| row.get(0)).collect(),
            Err(error) => panic!("{sql}\n{error:?}"),
        }
    }

    /// All rows as an array of objects.
    pub(crate) async fn rows(&self, sql: &str) -> Value {
        self.value(&format!("SELECT coalesce(jsonb_agg(to_jsonb(r)), '[]') FROM ({sql}) AS r")).await
    }

    /// The one row as an object.
    pub(crate) async fn row(&self, sql: &str) -> Value {
        let mut rows = self.rows(sql).await;
        assert_eq!(rows.as_array().map(Vec::len), Some(1), "{sql}\n{rows}");
        rows[0].take()
    }

    /// The SQLSTATE and the sentence of a refusal, such as `22023 qty 0 is not allowed: ...`.
    pub(crate) async fn refusal(&self, sql: &str) -> String {
        match self.client.query(sql, &[]).await {
            Ok(rows) => panic!("not refused, {} rows: {sql}", rows.len()),
            Err(error) => match error.as_db_error() {
                Some(answer) => format!("{} {}", answer.code().code(), answer.message()),
                None => panic!("{sql}\n{error:?}"),
            },
        }
    }

    /// The SQLSTATE of a refusal.
    pub(crate) async fn code(&self, sql: &str) -> String {
        let mut code = self.refusal(sql).await;
        code.truncate(5);
        code
    }

    /// Sends `{}` to queue `q`.
    pub(crate) async fn send(&self) -> i64 {
        self.value("SELECT vtq.send('q', '{}')").await
    }

    /// Reads up to `qty` messages of queue `q` for a minute, and returns their ids in the order of the answer.
    pub(crate) async fn read(&self, qty: i32) -> Vec<i64> {
        self.values(&format!("SELECT msg_id FROM vtq.read('q', '1 min', {qty})")).await
    }

    /// Makes a message of queue `q` visible; see [`vtq_tests::make_visible`].
    pub(crate) async fn make_visible(&self, msg_id: i64) {
        vtq_tests::make_visible(&self.client, "q", msg_id).await;
    }

    /// Counts the rows of a table.
    pub(crate) async fn count(&self, table: &str) -> i64 {
        self.value(&format!("SELECT count(*) FROM {table}")).await
    }

    /// The major version of the server.
    pub(crate) async fn major(&self) -> i32 {
        self.value("SELECT current_setting('server_version_num')::integer / 10000").await
    }
}

/// A seed for `setseed`, printed so that a failure can be run again.
pub(crate) async fn seed(session: &Session) -> f64 {
    let seed: f64 = session.value("SELECT random()").await;
    eprintln!("seed {seed}");
    seed
}

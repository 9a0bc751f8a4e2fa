//! The handle, and its pool of connections.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool::managed::{self, Metrics, PoolConfig, PoolError, QueueMode, RecycleError, RecycleResult};
use futures_util::StreamExt;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::ConnectOptions;
use super::connection::{Connection, Dedicated};
use super::dial::dial;
use super::settings::Settings;
use crate::error::{Error, Result};

/// A connection not used for this long is asked for a sign of life before it is handed out.
const UNPROVEN_AFTER: Duration = Duration::from_secs(5);
/// How long that, and a cancel request, may take.
const PROOF_LIMIT: Duration = Duration::from_secs(3);

/// A handle on a database with queues. Cheap to clone; all clones share one pool.
///
/// # Examples
/// ```no_run
/// # async fn example() -> vtq::Result<()> {
/// let vtq = vtq::Vtq::connect("postgres://ann@db.example/shop").await?;
/// vtq.ping().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Vtq {
    shared: Arc<Shared>,
}

struct Shared {
    options: ConnectOptions,
    settings: Arc<Settings>,
    pool: managed::Pool<Manager>,
}

impl Vtq {
    /// Connects to the database at `url`, and makes sure that it answers.
    ///
    /// # Errors
    /// As [`ConnectOptions::from_url`] and [`ConnectOptions::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        ConnectOptions::from_url(url)?.connect().await
    }

    pub(super) fn new(options: ConnectOptions, settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let mut config = PoolConfig::new(options.pool_size);
        config.timeouts.wait = Some(options.pool_timeout);
        // The connection that was used last is handed out first, so that a spare one is left alone.
        config.queue_mode = QueueMode::Lifo;
        let pool = managed::Pool::builder(Manager { settings: settings.clone() })
            .config(config)
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .expect("a pool with timeouts has been given its runtime");
        Self { shared: Arc::new(Shared { options, settings, pool }) }
    }

    /// Returns the options this handle was made with.
    pub fn options(&self) -> &ConnectOptions {
        &self.shared.options
    }

    /// Describes the database for people, with no password: `postgres://user@host:5432/db`.
    pub fn redacted(&self) -> String {
        self.shared.settings.redacted()
    }

    /// Returns how long the answer to one statement may take.
    pub fn statement_limit(&self) -> Duration {
        self.shared.options.statement_limit
    }

    /// Makes sure that the database answers.
    ///
    /// # Errors
    /// When it cannot be reached, does not let this user in, or does not answer in time.
    pub async fn ping(&self) -> Result<()> {
        let client = self.client().await?;
        let what = "ask the database for a sign of life";
        let answer = async { client.simple_query("SELECT 1").await.map_err(|e| Error::db(what, &e)) };
        client.bounded(what, answer).await.map(|_| ())
    }

    /// Opens a connection of its own, outside the pool.
    ///
    /// # Errors
    /// When the database cannot be reached, or does not let this user in.
    pub async fn dedicated(&self) -> Result<Dedicated> {
        let dialed = Box::pin(dial(&self.shared.settings)).await?;
        Ok(Dedicated { client: dialed.client, connection: dialed.connection })
    }

    /// Closes the pool: connections in use end when they are given back, and no new ones are made.
    pub fn close(&self) {
        self.shared.pool.close();
    }

    /// Takes a connection from the pool, or makes one.
    pub(crate) async fn client(&self) -> Result<PooledClient> {
        let options = &self.shared.options;
        let object = self.shared.pool.get().await.map_err(|e| match e {
            PoolError::Backend(e) => e,
            PoolError::Timeout(_) => Error::timeout(
                &format!("wait for one of the pool's {} connections", options.pool_size),
                options.pool_timeout,
            ),
            _ => Error::unavailable("the pool is closed"),
        })?;
        Ok(PooledClient { object, limit: options.statement_limit })
    }
}

impl fmt::Debug for Vtq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vtq").field("database", &self.redacted()).finish_non_exhaustive()
    }
}

/// A connection on loan from the pool.
pub(crate) struct PooledClient {
    object: managed::Object<Manager>,
    limit: Duration,
}

impl PooledClient {
    /// Waits for a verb that runs on this client, as long as the statement limit allows.
    ///
    /// A statement that is cut short, by the limit or because its future is dropped, takes its connection with it:
    /// the next user would wait behind it.
    pub(crate) async fn bounded<T>(&self, what: &str, verb: impl Future<Output = Result<T>>) -> Result<T> {
        let pooled = &*self.object;
        pooled.running.fetch_add(1, Ordering::Relaxed);
        let Ok(answer) = tokio::time::timeout(self.limit, verb).await else {
            pooled.cancel();
            return Err(Error::timeout(what, self.limit));
        };
        pooled.running.fetch_sub(1, Ordering::Relaxed);
        answer
    }
}

impl Deref for PooledClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.object.client
    }
}

impl DerefMut for PooledClient {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.object.client
    }
}

/// Makes the pool's connections, and decides which ones may be used again.
struct Manager {
    settings: Arc<Settings>,
}

/// A connection and the task that moves its bytes.
struct Pooled {
    client: Client,
    task: JoinHandle<()>,
    tls: Option<MakeRustlsConnect>,
    /// Statements begun and not answered.
    running: AtomicUsize,
}

impl managed::Manager for Manager {
    type Type = Pooled;
    type Error = Error;

    async fn create(&self) -> Result<Pooled> {
        // On the heap: dialing is rare, and its future would make that of every verb some 30 KB larger.
        let dialed = Box::pin(dial(&self.settings)).await?;
        let task = tokio::spawn(keep_moving(dialed.connection));
        Ok(Pooled { client: dialed.client, task, tls: dialed.tls, running: AtomicUsize::new(0) })
    }

    /// A restarted server has closed its sockets, which shows at once. A server that vanished without a word does
    /// not; a busy connection would find out by itself, so only one that rested pays for a round trip.
    async fn recycle(&self, pooled: &mut Pooled, metrics: &Metrics) -> RecycleResult<Error> {
        if pooled.client.is_closed() || pooled.is_running() {
            return Err(RecycleError::message("closed, or left in the middle of a statement"));
        }
        if metrics.last_used() < UNPROVEN_AFTER {
            return Ok(());
        }
        match tokio::time::timeout(PROOF_LIMIT, pooled.client.simple_query("")).await {
            Ok(Ok(_)) => Ok(()),
            _ => {
                // Aborting the task keeps it from waiting for a peer that is gone.
                pooled.task.abort();
                Err(RecycleError::message("no sign of life"))
            }
        }
    }
}

impl Pooled {
    fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Asks the server to stop what this connection is doing; best effort.
    fn cancel(&self) {
        let (token, tls) = (self.client.cancel_token(), self.tls.clone());
        tokio::spawn(tokio::time::timeout(PROOF_LIMIT, async move {
            match tls {
                Some(tls) => token.cancel_query(tls).await,
                None => token.cancel_query(tokio_postgres::NoTls).await,
            }
        }));
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // Otherwise the task says goodbye to the server and ends by itself.
        if self.is_running() {
            self.task.abort();
        }
    }
}

async fn keep_moving(mut connection: Connection) {
    // What ends a connection is reported to whoever uses the client next.
    while let Some(Ok(_)) = connection.next().await {}
}

#[cfg(test)]
mod tests;

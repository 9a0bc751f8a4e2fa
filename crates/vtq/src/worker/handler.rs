//! What runs for a message.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::outcome::{IntoOutcome, Outcome};
use crate::failure::Failure;
use crate::message::Message;
use crate::name::QueueName;

/// Runs for each message, up to the capsule's concurrency at once, on the runtime of the caller of
/// [`Worker::run`](super::Worker::run).
///
/// A message may be delivered more than once: a handler must bear that. Closures do for most; see [`handler_fn`] and
/// [`json`].
pub trait Handler: Send + Sync + 'static {
    /// Handles one message.
    ///
    /// The future is dropped when it has not ended a grace time after its [`Context`] was cancelled.
    fn handle(&self, message: Message, context: Context) -> impl Future<Output = Outcome> + Send;
}

/// Makes a handler of a closure that takes the message as it is.
pub fn handler_fn<F, R>(run: F) -> impl Handler
where
    F: Fn(Message, Context) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoOutcome,
{
    HandlerFn { run }
}

/// Makes a handler of a closure that takes the body as a type. A body that does not decode goes to the dead letters.
///
/// # Examples
/// ```
/// #[derive(serde::Deserialize)]
/// struct Order { id: u64 }
///
/// let handler = vtq::json(|order: Order, _| async move {
///     if order.id == 0 { return Err(vtq::Failure::permanent("order 0 is no order")) }
///     Ok(())
/// });
/// # let _: &dyn std::any::Any = &handler;
/// ```
pub fn json<T, F, R>(run: F) -> impl Handler
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, Context) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoOutcome,
{
    JsonFn { run, body: PhantomData::<fn() -> T> }
}

struct HandlerFn<F> {
    run: F,
}

impl<F, R> Handler for HandlerFn<F>
where
    F: Fn(Message, Context) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoOutcome,
{
    async fn handle(&self, message: Message, context: Context) -> Outcome {
        (self.run)(message, context).await.into_outcome()
    }
}

struct JsonFn<F, T> {
    run: F,
    body: PhantomData<fn() -> T>,
}

impl<T, F, R> Handler for JsonFn<F, T>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, Context) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoOutcome,
{
    async fn handle(&self, message: Message, mut context: Context) -> Outcome {
        match message.parse::<T>() {
            Ok(body) => {
                context.message = Some(message);
                (self.run)(body, context).await.into_outcome()
            }
            Err(error) => {
                let text = format!("message {} does not decode: {error}", message.id());
                Outcome::Failed(Failure::undecodable(text).class(std::any::type_name::<T>()))
            }
        }
    }
}

/// What a handler may know beside its message.
#[derive(Debug, Clone)]
pub struct Context {
    pub(super) queue: QueueName,
    pub(super) worker_id: Arc<str>,
    pub(super) message: Option<Message>,
    pub(super) cancel: Cancel,
}

impl Context {
    /// Names the queue.
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// Names the worker: host, pid and a random part.
    pub fn worker_id(&self) -> &str {
        &self.worker_id
    }

    /// Returns the message as it is, to a handler made by [`json`]; others have it already.
    pub fn message(&self) -> Option<&Message> {
        self.message.as_ref()
    }

    /// Tells why the run is to end early, or `None` while it may go on.
    pub fn cancelled(&self) -> Option<CancelCause> {
        self.cancel.cause()
    }

    /// Waits until the run is to end early. A handler with long waits of its own selects on it.
    pub async fn until_cancelled(&self) -> CancelCause {
        self.cancel.wait().await
    }
}

/// Why a run is to end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelCause {
    /// Another delivery has happened, or the message was cancelled: what this run still does is in vain.
    LeaseLost,
    /// It ran into its time limit. It will be recorded as timed out, whatever it returns.
    TimedOut,
    /// The worker stops, and has waited as long as it may. The message is given back.
    Shutdown,
}

/// A signal that is given once, with its cause.
#[derive(Debug, Clone, Default)]
pub(super) struct Cancel {
    token: CancellationToken,
    cause: Arc<OnceLock<CancelCause>>,
}

impl Cancel {
    /// Gives the signal; the first cause stays.
    pub(super) fn give(&self, cause: CancelCause) {
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    pub(super) fn cause(&self) -> Option<CancelCause> {
        self.cause.get().copied()
    }

    pub(super) async fn wait(&self) -> CancelCause {
        self.token.cancelled().await;
        self.cause().expect("the cause is set before the token is cancelled")
    }
}

/// A handler behind a pointer, so that capsules with different ones fit one worker.
pub(super) trait AnyHandler: Send + Sync {
    fn start(
        self: Arc<Self>,
        message: Message,
        context: Context,
    ) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;
}

impl<H: Handler> AnyHandler for H {
    fn start(
        self: Arc<Self>,
        message: Message,
        context: Context,
    ) -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
        Box::pin(async move { self.handle(message, context).await })
    }
}

impl fmt::Debug for dyn AnyHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

//! One connection, with TLS or without, and who moves its bytes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt, stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Notification};

use crate::error::{Error, Result};

/// Notifications carry nothing, so that it costs nothing to drop what a slow reader has not fetched.
const NOTIFICATIONS_KEPT: usize = 64;

/// A connection of its own, outside the pool.
///
/// Nothing happens on `client` unless somebody polls `connection`, on whatever runtime suits: that makes a
/// connection for `LISTEN`, or one that outlives the runtime of the pool.
#[derive(Debug)]
pub struct Dedicated {
    /// Sends statements.
    pub client: Client,
    /// Moves the bytes, and hands out notices and notifications.
    pub connection: Connection,
}

/// The half of a connection that does the reading and writing, with TLS or without.
///
/// A stream of what the server sends on its own accord. It ends when the client has been dropped, and after an
/// error.
#[must_use = "nothing happens on a connection that is not polled"]
pub struct Connection {
    messages: Pin<Box<dyn Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Send>>,
}

impl Dedicated {
    /// Leaves the connection to a task on the current runtime.
    ///
    /// The receiver gets notifications; it is closed when the connection is. It drops notifications that come while
    /// 64 of them wait.
    pub fn spawn(mut self) -> (Client, mpsc::Receiver<Notification>) {
        let (sender, receiver) = mpsc::channel(NOTIFICATIONS_KEPT);
        tokio::spawn(async move {
            while let Some(Ok(message)) = self.connection.next().await {
                if let AsyncMessage::Notification(notification) = message {
                    // Full or closed: nobody is waiting for this one.
                    let _ = sender.try_send(notification);
                }
            }
        });
        (self.client, receiver)
    }
}

impl Connection {
    pub(super) fn new<S, T>(mut connection: tokio_postgres::Connection<S, T>) -> Self
    where
        tokio_postgres::Connection<S, T>: Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin,
        T: AsyncRead + AsyncWrite + Unpin,
    {
        // The driver's connection must not be polled again after its end.
        let mut is_over = false;
        let messages = stream::poll_fn(move |context| {
            if is_over {
                return Poll::Ready(None);
            }
            let message = connection.poll_message(context);
            is_over = matches!(message, Poll::Ready(None | Some(Err(_))));
            message
        });
        Self { messages: Box::pin(messages) }
    }

    /// Moves bytes, and returns what the server has sent on its own accord.
    pub fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage>>> {
        self.messages.poll_next_unpin(context).map_err(|e| Error::db("keep the connection", &e))
    }

    /// Waits for an answer while moving the bytes that bring it.
    pub(super) async fn drive<T>(
        &mut self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, tokio_postgres::Error> {
        let mut answer = std::pin::pin!(answer);
        std::future::poll_fn(|context| {
            while let Poll::Ready(Some(message)) = self.messages.poll_next_unpin(context) {
                if let Err(e) = message {
                    return Poll::Ready(Err(e));
                }
            }
            answer.as_mut().poll(context)
        })
        .await
    }
}

impl Stream for Connection {
    type Item = Result<AsyncMessage>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(context)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

//! The verbs of a producer.

use serde::Serialize;

use super::Queue;
use crate::connect::PooledClient;
use crate::error::Result;
use crate::message::MessageId;
use crate::send::{self, Outgoing, SendOptions, SendReport};

impl Queue {
    /// Sends one message, with the queue's settings.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`](crate::ErrorKind::InvalidPayload) with the place in the message.
    /// # SQL
    /// `sql/functions/vtq.send.sql`
    pub async fn send(&self, message: &(impl Serialize + ?Sized)) -> Result<MessageId> {
        self.send_with(&Outgoing::new(message)?, &SendOptions::default()).await
    }

    /// Sends one message, with settings of its own.
    ///
    /// # SQL
    /// `sql/functions/vtq.send.sql`
    pub async fn send_with(&self, message: &Outgoing, options: &SendOptions) -> Result<MessageId> {
        run!(self, "send to", send::send, &self.name, message, options)
    }

    /// Sends many messages, all or none. Returns their ids in the order of the messages.
    ///
    /// # Errors
    /// [`Error::index`](crate::Error::index) names the message that is to blame, where one is.
    /// # SQL
    /// `sql/functions/vtq.send_batch.sql`
    pub async fn send_batch(&self, messages: &[Outgoing], options: &SendOptions) -> Result<Vec<MessageId>> {
        run!(self, "send to", send::send_batch, &self.name, messages, options)
    }

    /// Sends one message, and tells whether it is new: its unique key may be taken.
    ///
    /// # Errors
    /// [`ErrorKind::KeyTaken`](crate::ErrorKind::KeyTaken) with [`OnConflict::Error`](crate::OnConflict::Error).
    /// # SQL
    /// `sql/functions/vtq.send_report.sql`
    pub async fn send_report(&self, message: &Outgoing, options: &SendOptions) -> Result<SendReport> {
        run!(self, "send to", send::send_report, &self.name, message, options)
    }

    /// Sends many messages, and tells of each whether it is new, in the order of the messages.
    ///
    /// What cannot be sent fails the whole; only a taken key does not, unless
    /// [`OnConflict::Error`](crate::OnConflict::Error) asks for it.
    ///
    /// # Errors
    /// [`ErrorKind::KeyTaken`](crate::ErrorKind::KeyTaken); [`Error::index`](crate::Error::index) names the message
    /// that is to blame, where one is.
    /// # SQL
    /// `sql/functions/vtq.send_batch_report.sql`
    pub async fn send_batch_report(
        &self,
        messages: &[Outgoing],
        options: &SendOptions,
    ) -> Result<Vec<SendReport>> {
        run!(self, "send to", send::send_batch_report, &self.name, messages, options)
    }

    /// Sends whatever can be sent, and tells of each element what became of it, in their order.
    ///
    /// An element that is an error, as [`Outgoing::new`] makes of what JSON cannot hold, is its own answer; so is one
    /// that the database refuses, and with [`OnConflict::Error`](crate::OnConflict::Error) one whose key is taken.
    /// The others are sent, all of them or none. There is no such method on a transaction of your own, which the first
    /// refusal would abort.
    ///
    /// # Errors
    /// Of the call: what keeps all of the elements from being sent. Of an element: as above, with
    /// [`Error::index`](crate::Error::index).
    /// # SQL
    /// `sql/functions/vtq.send_batch_report.sql`
    pub async fn send_each(
        &self,
        messages: Vec<Result<Outgoing>>,
        options: &SendOptions,
    ) -> Result<Vec<Result<SendReport>>> {
        run!(self, "send to", send::send_each, &self.name, messages, options)
    }

    /// Sends messages by COPY, all or none: for millions, which no single call should carry. Returns how many.
    ///
    /// They have the queue's settings and no keys; their ids are not told. The messages may come from an iterator that
    /// makes them as it goes. A connection of its own carries them, and no limit on statements holds.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPayload`](crate::ErrorKind::InvalidPayload) and others as in [`send`](Self::send), with
    /// [`Error::index`](crate::Error::index) where one message is to blame.
    pub async fn send_copy(&self, messages: impl IntoIterator<Item = Outgoing>) -> Result<u64> {
        let client = self.vtq.dedicated().await?.spawn().0;
        send::copy(&client, &self.name, messages).await
    }
}

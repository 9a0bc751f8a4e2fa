//! The verbs on a connection or transaction of the caller's own.
//!
//! A send in the transaction of the business change happens if and only if that change does. An ack in the
//! transaction of a handler's effect makes the two one: that is how an effect in this database happens exactly once.
//!
//! ```no_run
//! # async fn example(client: &mut tokio_postgres::Client, vtq: &vtq::Vtq) -> Result<(), Box<dyn std::error::Error>> {
//! let orders = vtq.queue("orders")?;
//! let tx = client.transaction().await?;
//! tx.execute("INSERT INTO purchase (id) VALUES (7)", &[]).await?;
//! orders.on(&tx).send(&serde_json::json!({"purchase": 7})).await?;
//! tx.commit().await?;
//! # Ok(()) }
//! ```

use std::time::Duration;

use serde::Serialize;
use tokio_postgres::GenericClient;

use crate::admin;
use crate::dead_letter::{self, Reason};
use crate::error::Result;
use crate::failure::{Failure, Record};
use crate::message::{Lease, Message, MessageId};
use crate::name::QueueName;
use crate::queue::Queue;
use crate::read::{self, ReadOptions};
use crate::send::{self, Outgoing, SendOptions, SendReport};
use crate::settle::{self, Fate, Settled};

/// A queue on a connection or transaction of the caller's own. Made by [`Queue::on`].
///
/// Each method is that of [`Queue`], without a limit of its own and without a pool. What it does happens when the
/// caller's transaction commits. An error aborts that transaction, as any SQL error does.
#[derive(Debug)]
pub struct QueueOn<'a, C> {
    client: &'a C,
    name: &'a QueueName,
}

impl Queue {
    /// Returns the verbs on a connection or transaction of the caller's own.
    pub fn on<'a, C: GenericClient>(&'a self, client: &'a C) -> QueueOn<'a, C> {
        QueueOn { client, name: self.name() }
    }
}

impl<C: GenericClient> QueueOn<'_, C> {
    /// As [`Queue::send`].
    pub async fn send(&self, message: &(impl Serialize + ?Sized)) -> Result<MessageId> {
        self.send_with(&Outgoing::new(message)?, &SendOptions::default()).await
    }

    /// As [`Queue::send_with`].
    pub async fn send_with(&self, message: &Outgoing, options: &SendOptions) -> Result<MessageId> {
        send::send(self.client, self.name, message, options).await
    }

    /// As [`Queue::send_batch`].
    pub async fn send_batch(&self, messages: &[Outgoing], options: &SendOptions) -> Result<Vec<MessageId>> {
        send::send_batch(self.client, self.name, messages, options).await
    }

    /// As [`Queue::send_report`].
    pub async fn send_report(&self, message: &Outgoing, options: &SendOptions) -> Result<SendReport> {
        send::send_report(self.client, self.name, message, options).await
    }

    /// As [`Queue::send_batch_report`].
    pub async fn send_batch_report(
        &self,
        messages: &[Outgoing],
        options: &SendOptions,
    ) -> Result<Vec<SendReport>> {
        send::send_batch_report(self.client, self.name, messages, options).await
    }

    /// As [`Queue::read`]. The messages are locked, and seen by nobody else, until the transaction ends; after a
    /// rollback they are as if never read.
    pub async fn read(&self, options: &ReadOptions) -> Result<Vec<Message>> {
        read::read(self.client, self.name, options).await
    }

    /// As [`Queue::peek`].
    pub async fn peek(&self, qty: usize) -> Result<Vec<Message>> {
        read::peek(self.client, self.name, qty).await
    }

    /// As [`Queue::ack`].
    pub async fn ack(&self, lease: Lease) -> Result<Settled> {
        Ok(settle::settled(lease, &self.ack_batch(&[lease]).await?))
    }

    /// As [`Queue::ack_batch`].
    pub async fn ack_batch(&self, leases: &[Lease]) -> Result<Vec<MessageId>> {
        settle::ack(self.client, self.name, leases, None).await
    }

    /// As [`Queue::extend`].
    pub async fn extend(
        &self,
        leases: &[Lease],
        visibility_timeout: Option<Duration>,
    ) -> Result<Vec<MessageId>> {
        settle::extend(self.client, self.name, leases, visibility_timeout).await
    }

    /// As [`Queue::fail`].
    pub async fn fail(&self, lease: Lease, failure: &Failure) -> Result<Fate> {
        settle::fail(self.client, self.name, lease, &failure.error, failure.wait(), None).await
    }

    /// As [`Queue::defer`].
    pub async fn defer(&self, lease: Lease, delay: Duration, reason: Option<&str>) -> Result<Fate> {
        settle::defer(self.client, self.name, lease, delay, reason, None).await
    }

    /// As [`Queue::release`].
    pub async fn release(&self, leases: &[Lease], reason: Option<&str>) -> Result<Vec<MessageId>> {
        settle::release(self.client, self.name, leases, reason, None).await
    }

    /// As [`Queue::dead_letter`].
    pub async fn dead_letter(
        &self,
        lease: Lease,
        reason: Reason,
        failure: Option<&Failure>,
    ) -> Result<Settled> {
        let nothing = Record::default();
        let error = failure.map_or(&nothing, |failure| &failure.error);
        dead_letter::dead_letter(self.client, self.name, lease, reason, error, None).await
    }

    /// As [`Queue::cancel`].
    pub async fn cancel(&self, id: MessageId) -> Result<bool> {
        admin::cancel(self.client, self.name, id).await
    }

    /// As [`Queue::run_now`].
    pub async fn run_now(&self, id: MessageId) -> Result<bool> {
        admin::run_now(self.client, self.name, id).await
    }

    /// As [`Queue::redrive`].
    pub async fn redrive(&self, id: MessageId, delay: Option<Duration>) -> Result<bool> {
        dead_letter::redrive(self.client, self.name, id, delay).await
    }
}

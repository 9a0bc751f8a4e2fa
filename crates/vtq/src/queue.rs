//! The handle on one queue. Every method is a delegation to its verb's file.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::admin::{self, Created, QueueOptions};
use crate::connect::{PooledClient, Vtq};
use crate::dead_letter::{self, Purge, Reason, RedriveFilter, Swept};
use crate::error::Result;
use crate::failure::{Failure, Record};
use crate::inspect::{self, Attempt, DeadLetter, DeadLetterDetail, Metrics};
use crate::lint::{self, Finding, TimeToDeadLetter};
use crate::message::{Lease, Message, MessageId};
use crate::name::QueueName;
use crate::read::{self, ReadOptions};
use crate::settle::{self, Fate, Settled};

/// Checks out a connection and runs a verb on it, within the statement limit.
macro_rules! run {
    ($self:ident, $what:literal, $verb:path $(, $argument:expr)*) => {{
        let client: PooledClient = $self.vtq.client().await?;
        client.bounded(concat!($what, " a queue"), $verb(&*client $(, $argument)*)).await
    }};
}

mod sending;

/// One queue. Cheap to clone.
///
/// Each method takes a connection from the pool, runs one SQL function and gives the connection back. For the same
/// verbs inside a transaction of your own, see [`on`](crate::on). No method creates the queue, but
/// [`create`](Self::create).
///
/// None of the methods is cancel safe in the strict sense: a future that is dropped may have run its statement.
/// Dropping a read hides its messages until their timeout; anything else has happened or not.
///
/// # Errors
/// All methods: [`ErrorKind`](crate::ErrorKind) `QueueNotFound`, `NotMigrated`, `Timeout`, `Unavailable`,
/// `PermissionDenied`; `InvalidArgument` with the rule for an argument that breaks it. Others are named where they
/// can happen.
#[derive(Debug, Clone)]
pub struct Queue {
    vtq: Vtq,
    name: QueueName,
}

impl Vtq {
    /// Returns the handle on one queue, whether it exists or not.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a name against the rule.
    pub fn queue(&self, name: impl AsRef<str>) -> Result<Queue> {
        Ok(Queue { vtq: self.clone(), name: QueueName::new(name.as_ref())? })
    }

    /// Measures every queue, in order of name.
    ///
    /// A queue that cannot be read says so in [`Metrics::error`] and hides none of the others. Counts past 5000 are
    /// estimates unless `exact`.
    ///
    /// # SQL
    /// `sql/functions/vtq.metrics_all.sql`
    pub async fn metrics_all(&self, exact: Exact) -> Result<Vec<Metrics>> {
        let client = self.client().await?;
        client.bounded("measure the queues", inspect::metrics_all(&*client, exact == Exact::Yes)).await
    }
}

/// Whether counts are to be exact, at the price of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    /// Counts past 5000 may be estimates; the cost is bounded.
    No,
    /// Every row is counted.
    Yes,
}

impl Queue {
    /// Returns the queue's name.
    pub fn name(&self) -> &QueueName {
        &self.name
    }

    /// Creates the queue, or repairs it when a table of it is missing.
    ///
    /// # Errors
    /// [`ErrorKind::QueueExists`](crate::ErrorKind::QueueExists) when it is there and an option that is set differs.
    /// # SQL
    /// `sql/functions/vtq.create_queue.sql`
    pub async fn create(&self, options: &QueueOptions) -> Result<Created> {
        run!(self, "create", admin::create, &self.name, options)
    }

    /// Changes options, at once and for the messages in the queue too. Returns all options as they are in force.
    ///
    /// # SQL
    /// `sql/functions/vtq.set_queue.sql`
    pub async fn set(&self, options: &QueueOptions) -> Result<Map<String, Value>> {
        run!(self, "change", admin::set, &self.name, options)
    }

    /// Returns all options as they are in force.
    ///
    /// # SQL
    /// `sql/functions/vtq.queue_options.sql`
    pub async fn options(&self) -> Result<Map<String, Value>> {
        run!(self, "look up", admin::options, &self.name)
    }

    /// Drops the queue with everything in it; false when it was not there.
    ///
    /// # SQL
    /// `sql/functions/vtq.drop_queue.sql`
    pub async fn drop_queue(&self) -> Result<bool> {
        run!(self, "drop", admin::drop_queue, &self.name)
    }

    /// Makes reads return nothing until [`resume`](Self::resume), or until an instant. False when it was paused.
    ///
    /// # SQL
    /// `sql/functions/vtq.pause.sql`
    pub async fn pause(&self, reason: Option<&str>, until: Option<DateTime<Utc>>) -> Result<bool> {
        run!(self, "pause", admin::pause, &self.name, reason, until)
    }

    /// Ends a pause; false when there was none.
    ///
    /// # SQL
    /// `sql/functions/vtq.resume.sql`
    pub async fn resume(&self) -> Result<bool> {
        run!(self, "resume", admin::resume, &self.name)
    }

    /// Leases up to `qty` visible messages and hides them for the visibility timeout.
    ///
    /// Returns between 0 and `qty` messages in hand-out order: by priority level, then whichever has been ready
    /// longest. Nothing to read is an empty vector. Each carries a [`Lease`]; from `visible_at` on, by the database's
    /// clock, another reader may take the message over. At least once.
    ///
    /// # Cancel safety
    /// Not cancel safe: if dropped after the statement ran, the batch stays hidden until its timeout.
    /// # SQL
    /// `sql/functions/vtq.read.sql`
    pub async fn read(&self, options: &ReadOptions) -> Result<Vec<Message>> {
        run!(self, "read from", read::read, &self.name, options)
    }

    /// Shows what a read would hand out, and changes nothing. `qty` 1 to 10000.
    ///
    /// # SQL
    /// `sql/functions/vtq.peek.sql`
    pub async fn peek(&self, qty: usize) -> Result<Vec<Message>> {
        run!(self, "peek into", read::peek, &self.name, qty)
    }

    /// Settles a message as done.
    ///
    /// # SQL
    /// `sql/functions/vtq.ack.sql`
    pub async fn ack(&self, lease: Lease) -> Result<Settled> {
        Ok(settle::settled(lease, &self.ack_batch(&[lease]).await?))
    }

    /// Settles many as done. Returns the ids settled, in order; the rest were stale.
    ///
    /// # SQL
    /// `sql/functions/vtq.ack.sql`
    pub async fn ack_batch(&self, leases: &[Lease]) -> Result<Vec<MessageId>> {
        run!(self, "ack in", settle::ack, &self.name, leases, None)
    }

    /// Lengthens leases, counted from now. Returns the ids still held, in order. Default length: the queue's.
    ///
    /// # SQL
    /// `sql/functions/vtq.extend.sql`
    pub async fn extend(
        &self,
        leases: &[Lease],
        visibility_timeout: Option<Duration>,
    ) -> Result<Vec<MessageId>> {
        run!(self, "extend leases in", settle::extend, &self.name, leases, visibility_timeout)
    }

    /// Settles a delivery as failed: due again after the backoff, or dead when no run is left.
    ///
    /// The failure's own wait goes before the backoff. Whether it is permanent plays no part here; see
    /// [`dead_letter`](Self::dead_letter). The same call again gets the same answer and changes nothing.
    ///
    /// # SQL
    /// `sql/functions/vtq.fail.sql`
    pub async fn fail(&self, lease: Lease, failure: &Failure) -> Result<Fate> {
        run!(
            self,
            "record a failure in",
            settle::fail,
            &self.name,
            lease,
            &failure.error,
            failure.wait(),
            None
        )
    }

    /// Gives a delivery back for later. It does not count as an attempt.
    ///
    /// # SQL
    /// `sql/functions/vtq.defer.sql`
    pub async fn defer(&self, lease: Lease, delay: Duration, reason: Option<&str>) -> Result<Fate> {
        run!(self, "defer in", settle::defer, &self.name, lease, delay, reason, None)
    }

    /// Gives deliveries back at once. They do not count as attempts. Returns the ids released, in order.
    ///
    /// # SQL
    /// `sql/functions/vtq.release.sql`
    pub async fn release(&self, leases: &[Lease], reason: Option<&str>) -> Result<Vec<MessageId>> {
        run!(self, "release in", settle::release, &self.name, leases, reason, None)
    }

    /// Moves a held message straight to the dead letters.
    ///
    /// # Errors
    /// [`ErrorKind::TableMissing`](crate::ErrorKind::TableMissing) when the table of dead letters is gone; the
    /// message stays where it is.
    /// # SQL
    /// `sql/functions/vtq.dead_letter.sql`
    pub async fn dead_letter(
        &self,
        lease: Lease,
        reason: Reason,
        failure: Option<&Failure>,
    ) -> Result<Settled> {
        let nothing = Record::default();
        let error = failure.map_or(&nothing, |failure| &failure.error);
        run!(self, "dead-letter in", dead_letter::dead_letter, &self.name, lease, reason, error, None)
    }

    /// Removes a live message, whoever holds it; its holder learns at its next heartbeat. False when it is not there.
    ///
    /// # SQL
    /// `sql/functions/vtq.cancel.sql`
    pub async fn cancel(&self, id: MessageId) -> Result<bool> {
        run!(self, "cancel in", admin::cancel, &self.name, id)
    }

    /// Makes a delayed or retrying message due now. False when it is neither.
    ///
    /// # SQL
    /// `sql/functions/vtq.run_now.sql`
    pub async fn run_now(&self, id: MessageId) -> Result<bool> {
        run!(self, "hurry a message of", admin::run_now, &self.name, id)
    }

    /// Moves one dead letter back: same id, new budget. False when there is no such dead letter.
    ///
    /// # SQL
    /// `sql/functions/vtq.redrive.sql`
    pub async fn redrive(&self, id: MessageId, delay: Option<Duration>) -> Result<bool> {
        run!(self, "redrive in", dead_letter::redrive, &self.name, id, delay)
    }

    /// Moves up to `qty` (1 to 10000) dead letters back, the oldest first. Returns how many; call it until that is 0.
    ///
    /// # SQL
    /// `sql/functions/vtq.redrive_all.sql`
    pub async fn redrive_all(&self, qty: u16, filter: &RedriveFilter) -> Result<u64> {
        run!(self, "redrive in", dead_letter::redrive_all, &self.name, qty, filter)
    }

    /// Counts the dead letters that cannot be sent back, since another message has their unique key.
    ///
    /// # SQL
    /// `sql/functions/vtq.redrive_taken.sql`
    pub async fn redrive_taken(&self, filter: &RedriveFilter) -> Result<u64> {
        run!(self, "count in", dead_letter::redrive_taken, &self.name, filter)
    }

    /// Removes dead letters for good, up to `qty` (1 to 10000). Returns how many; call it until that is 0.
    ///
    /// # SQL
    /// `sql/functions/vtq.dlq_purge.sql`
    pub async fn dlq_purge(&self, which: Purge, qty: u16) -> Result<u64> {
        run!(self, "purge dead letters of", dead_letter::dlq_purge, &self.name, which, qty)
    }

    /// Lists dead letters, the last one to die first; `before` is the last row of the page before.
    ///
    /// # SQL
    /// `sql/functions/vtq.dlq_list.sql`
    pub async fn dlq_list(
        &self,
        qty: u16,
        before: Option<(DateTime<Utc>, MessageId)>,
    ) -> Result<Vec<DeadLetter>> {
        run!(self, "list dead letters of", inspect::dlq_list, &self.name, qty, before)
    }

    /// Shows one dead letter, whole.
    ///
    /// # SQL
    /// `sql/functions/vtq.dlq_show.sql`
    pub async fn dlq_show(&self, id: MessageId) -> Result<Option<DeadLetterDetail>> {
        run!(self, "show a dead letter of", inspect::dlq_show, &self.name, id)
    }

    /// Lists the deliveries of a message that did not succeed, the first one first.
    ///
    /// # SQL
    /// `sql/functions/vtq.attempts.sql`
    pub async fn attempts(&self, id: MessageId) -> Result<Vec<Attempt>> {
        run!(self, "list attempts in", inspect::attempts, &self.name, id)
    }

    /// Tells why a message does not run now, and what happened to it so far. Returns the object as JSON text.
    ///
    /// # SQL
    /// `sql/functions/vtq.explain.sql`
    pub async fn explain(&self, id: MessageId) -> Result<Box<RawValue>> {
        run!(self, "explain a message of", inspect::explain, &self.name, id)
    }

    /// Moves what can no longer run to the dead letters, and records deliveries that left no outcome.
    ///
    /// # SQL
    /// `sql/functions/vtq.sweep.sql`
    pub async fn sweep(&self, qty: u16) -> Result<Swept> {
        run!(self, "sweep", dead_letter::sweep, &self.name, qty)
    }

    /// Runs retention, archive partitions and compaction. Returns what was done.
    ///
    /// # SQL
    /// `sql/functions/vtq.maintain.sql`
    pub async fn maintain(&self) -> Result<Map<String, Value>> {
        run!(self, "maintain", admin::maintain, &self.name)
    }

    /// Looks for what is contradictory or doubtful in the queue's settings. Errors first.
    ///
    /// `drain`: how long the workers let runs go on when they stop; `deadline`: how long after its sending a message is
    /// worth a retry.
    ///
    /// # SQL
    /// `sql/functions/vtq.lint.sql`
    pub async fn lint(&self, drain: Option<Duration>, deadline: Option<Duration>) -> Result<Vec<Finding>> {
        run!(self, "lint", lint::lint, &self.name, drain, deadline)
    }

    /// Works out how long a message that always fails takes from its first run to the dead letters.
    ///
    /// # SQL
    /// `sql/functions/vtq.time_to_dlq.sql`
    pub async fn time_to_dead_letter(&self) -> Result<TimeToDeadLetter> {
        run!(self, "look up", lint::time_to_dead_letter, &self.name)
    }

    /// Measures the queue.
    ///
    /// # SQL
    /// `sql/functions/vtq.metrics.sql`
    pub async fn metrics(&self, exact: Exact) -> Result<Metrics> {
        run!(self, "measure", inspect::metrics, &self.name, exact == Exact::Yes)
    }
}

//! Handlers that take many messages at once, and settle each on its own.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::handler::{Context, Handler};
use super::outcome::Outcome;
use super::plan::lock;
use crate::failure::Failure;
use crate::message::Message;

/// Makes a handler of a closure that takes up to `size` messages at once and says for each how its run ended, in the
/// same order.
///
/// A batch starts when it is full, or `linger` after its first message came. Each message is a delivery of its own,
/// with its own lease, attempts, time limit and backoff: what failed is retried alone, and what is done stays done.
/// The capsule's concurrency counts messages, so it has to be `size` or more for batches to fill.
///
/// A panic, or an answer with another number of outcomes, fails every message of the batch.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use vtq::{Failure, Outcome};
///
/// let handler = vtq::batch_fn(100, Duration::from_millis(20), |batch| async move {
///     batch.iter().map(|(message, _)| match message.decode::<u64>() {
///         Ok(_) => Outcome::Done,
///         Err(error) => Outcome::Failed(Failure::undecodable(error.to_string())),
///     }).collect()
/// });
/// # let _: &dyn std::any::Any = &handler;
/// ```
pub fn batch_fn<F, R>(size: usize, linger: Duration, run: F) -> impl Handler
where
    F: Fn(Vec<(Message, Context)>) -> R + Send + Sync + 'static,
    R: Future<Output = Vec<Outcome>> + Send + 'static,
{
    BatchFn { size: size.max(1), linger, run: Arc::new(run), open: Arc::default() }
}

struct BatchFn<F> {
    size: usize,
    linger: Duration,
    run: Arc<F>,
    open: Arc<Mutex<Open>>,
}

/// The batch that is being filled.
#[derive(Default)]
struct Open {
    /// Rises with each batch, so that a timer does not start one that is not its own.
    number: u64,
    members: Vec<Member>,
}

struct Member {
    message: Message,
    context: Context,
    answer: oneshot::Sender<Result<Outcome, String>>,
}

impl Open {
    fn take(&mut self) -> Vec<Member> {
        self.number += 1;
        std::mem::take(&mut self.members)
    }
}

impl<F, R> Handler for BatchFn<F>
where
    F: Fn(Vec<(Message, Context)>) -> R + Send + Sync + 'static,
    R: Future<Output = Vec<Outcome>> + Send + 'static,
{
    async fn handle(&self, message: Message, context: Context) -> Outcome {
        let (answer, answered) = oneshot::channel();
        let mut first_of = None;
        let full = {
            let mut open = lock(&self.open);
            open.members.push(Member { message, context, answer });
            if open.members.len() == 1 {
                first_of = Some(open.number);
            }
            (open.members.len() >= self.size).then(|| open.take())
        };
        match (full, first_of) {
            (Some(members), _) => drop(tokio::spawn(work(self.run.clone(), members))),
            (None, Some(number)) => {
                let (open, run, linger) = (self.open.clone(), self.run.clone(), self.linger);
                tokio::spawn(async move {
                    tokio::time::sleep(linger).await;
                    let members = {
                        let mut open = lock(&open);
                        if open.number == number { open.take() } else { Vec::new() }
                    };
                    work(run, members).await;
                });
            }
            (None, None) => {}
        }
        match answered.await {
            Ok(Ok(outcome)) => outcome,
            // Panics again, so that it is recorded as what it was.
            Ok(Err(panic)) => std::panic::resume_unwind(Box::new(panic)),
            Err(_) => Outcome::Failed(Failure::new("the batch was dropped").class("batch")),
        }
    }
}

/// Runs one batch, without the messages whose runs were cancelled while it filled.
async fn work<F, R>(run: Arc<F>, mut members: Vec<Member>)
where
    F: Fn(Vec<(Message, Context)>) -> R + Send + Sync + 'static,
    R: Future<Output = Vec<Outcome>> + Send + 'static,
{
    members.retain(|member| !member.answer.is_closed());
    if members.is_empty() {
        return;
    }
    let (answers, batch): (Vec<_>, Vec<_>) =
        members.into_iter().map(|member| (member.answer, (member.message, member.context))).unzip();
    let expected = batch.len();
    // In a task of its own, which catches a panic, also one in the call itself.
    let ran = tokio::spawn(async move { run(batch).await }).await;
    let outcomes: Vec<Result<Outcome, String>> = match ran {
        Ok(outcomes) if outcomes.len() == expected => outcomes.into_iter().map(Ok).collect(),
        Ok(outcomes) => {
            let said =
                format!("the batch handler answered {} outcomes for {expected} messages", outcomes.len());
            let failure = || Ok(Outcome::Failed(Failure::new(said.clone()).class("batch")));
            (0..expected).map(|_| failure()).collect()
        }
        Err(error) => {
            let text = match error.try_into_panic() {
                Ok(panic) => super::run::panic_text(&*panic),
                Err(_) => "the batch was cancelled".into(),
            };
            (0..expected).map(|_| Err(text.clone())).collect()
        }
    };
    for (answer, outcome) in answers.into_iter().zip(outcomes) {
        // Nobody waits for a message whose run was cancelled meanwhile.
        let _ = answer.send(outcome);
    }
}

//! Sending.

mod copy;
mod key;
mod options;
mod outgoing;

use chrono::{DateTime, Utc};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Row};

pub(crate) use self::copy::copy;
use self::key::Keys;
pub use self::key::{OnConflict, SendOutcome, SendReport, UniqueUntil};
pub use self::options::SendOptions;
pub use self::outgoing::Outgoing;
use crate::call::{self, Param};
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageId;
use crate::name::QueueName;
use crate::sql;
use crate::wire::{Interval, Json};

/// What a send says about all of its messages, as values that the wire takes.
struct Shared<'a> {
    headers: Option<String>,
    delay: Option<Interval>,
    visible_at: Option<DateTime<Utc>>,
    priority: Option<i32>,
    max_attempts: Option<i32>,
    policy: Option<String>,
    expires_at: Option<DateTime<Utc>>,
    retry_until: Option<DateTime<Utc>>,
    keys: &'a Keys,
    unique_until: Option<&'static str>,
    unique_for: Option<Interval>,
    on_conflict: Option<&'static str>,
    max_wait: Option<Interval>,
}

impl<'a> Shared<'a> {
    fn of(options: &'a SendOptions) -> Result<Self> {
        Ok(Self {
            headers: options.headers_text()?,
            delay: options.delay.map(Interval),
            visible_at: options.visible_at,
            priority: options.priority.map(i32::from),
            max_attempts: options.max_attempts.map(i32::from),
            policy: options.policy()?,
            expires_at: options.expires_at,
            retry_until: options.retry_until,
            keys: &options.keys,
            unique_until: options.unique_until.map(UniqueUntil::text),
            unique_for: options.unique_for.map(Interval),
            on_conflict: options.on_conflict.map(OnConflict::text),
            max_wait: options.max_wait.map(Interval),
        })
    }

    /// The headers of a message: its own, or else those of all.
    fn headers_of<'b>(&'b self, message: &'b Outgoing) -> Option<Json<'b>> {
        message.headers.as_deref().or(self.headers.as_deref()).map(Json)
    }

    /// A key of a message: its own, or else that of all.
    fn key_of<'b>(&'b self, message: &'b Outgoing, of: fn(&Keys) -> &Option<String>) -> Option<&'b str> {
        of(&message.keys).as_deref().or(of(self.keys).as_deref())
    }

    /// Runs a statement whose parameters are those of `vtq.send` or `vtq.send_batch`, in their order.
    async fn run<C: GenericClient, B: Body>(
        &self,
        client: &C,
        queue: &QueueName,
        what: &str,
        call: Call,
        body: &B,
    ) -> Result<Vec<Row>> {
        let policy = self.policy.as_deref().map(Json);
        let params: [Param<'_>; 17] = [
            (&queue.as_str(), Type::TEXT),
            (body.messages(), B::JSON),
            (body.headers(), B::JSON),
            (&self.delay, Type::INTERVAL),
            (&self.visible_at, Type::TIMESTAMPTZ),
            (&self.priority, Type::INT4),
            (&self.max_attempts, Type::INT4),
            (&policy, Type::JSONB),
            (&self.expires_at, Type::TIMESTAMPTZ),
            (&self.retry_until, Type::TIMESTAMPTZ),
            (body.unique_keys(), B::TEXT),
            (&self.unique_until, Type::TEXT),
            (&self.unique_for, Type::INTERVAL),
            (&self.on_conflict, Type::TEXT),
            (&self.max_wait, Type::INTERVAL),
            (body.group_keys(), B::TEXT),
            (body.exclusive_keys(), B::TEXT),
        ];
        match call.own {
            Some(own) if !self.has_rules() && !body.has_keys() => {
                call::own_rows(client, what, &own(queue), call.verb, &params).await
            }
            _ => call::rows(client, what, call.verb, &params).await,
        }
    }

    /// Whether the options say more than a queue's own functions take.
    fn has_rules(&self) -> bool {
        self.retry_until.is_some()
            || self.unique_until.is_some()
            || self.unique_for.is_some()
            || self.on_conflict.is_some()
            || self.max_wait.is_some()
    }
}

/// The statement of a verb, and that of the queue's own function for the same, where there is one.
#[derive(Clone, Copy)]
struct Call {
    verb: &'static str,
    own: Option<fn(&QueueName) -> String>,
}

const SEND: Call = Call { verb: sql::SEND, own: Some(sql::own::send) };
const SEND_REPORT: Call = Call { verb: sql::SEND_REPORT, own: None };
const SEND_BATCH: Call = Call { verb: sql::SEND_BATCH, own: Some(sql::own::send_batch) };
const SEND_BATCH_REPORT: Call = Call { verb: sql::SEND_BATCH_REPORT, own: None };

/// The parameters that are of one message in a single send, and arrays in a batch.
trait Body {
    const JSON: Type;
    const TEXT: Type;
    fn messages(&self) -> &(dyn ToSql + Sync);
    fn headers(&self) -> &(dyn ToSql + Sync);
    fn unique_keys(&self) -> &(dyn ToSql + Sync);
    fn group_keys(&self) -> &(dyn ToSql + Sync);
    fn exclusive_keys(&self) -> &(dyn ToSql + Sync);
    fn has_keys(&self) -> bool;
}

struct Parts<M, H, K> {
    messages: M,
    headers: H,
    unique_keys: K,
    group_keys: K,
    exclusive_keys: K,
}

macro_rules! body {
    ($parts:ty, $json:expr, $text:expr) => {
        impl Body for $parts {
            const JSON: Type = $json;
            const TEXT: Type = $text;
            fn messages(&self) -> &(dyn ToSql + Sync) {
                &self.messages
            }
            fn headers(&self) -> &(dyn ToSql + Sync) {
                &self.headers
            }
            fn unique_keys(&self) -> &(dyn ToSql + Sync) {
                &self.unique_keys
            }
            fn group_keys(&self) -> &(dyn ToSql + Sync) {
                &self.group_keys
            }
            fn exclusive_keys(&self) -> &(dyn ToSql + Sync) {
                &self.exclusive_keys
            }
            fn has_keys(&self) -> bool {
                self.unique_keys.is_some() || self.group_keys.is_some() || self.exclusive_keys.is_some()
            }
        }
    };
}

type One<'a> = Parts<Json<'a>, Option<Json<'a>>, Option<&'a str>>;
body!(One<'_>, Type::JSONB, Type::TEXT);

type Many<'a> = Parts<Vec<Json<'a>>, Option<Vec<Option<Json<'a>>>>, Option<Vec<Option<&'a str>>>>;
body!(Many<'_>, Type::JSONB_ARRAY, Type::TEXT_ARRAY);

impl<'a> One<'a> {
    fn of(message: &'a Outgoing, shared: &'a Shared<'_>) -> Self {
        Self {
            messages: Json(&message.body),
            headers: shared.headers_of(message),
            unique_keys: shared.key_of(message, |keys| &keys.unique),
            group_keys: shared.key_of(message, |keys| &keys.group),
            exclusive_keys: shared.key_of(message, |keys| &keys.exclusive),
        }
    }
}

impl<'a> Many<'a> {
    fn of(messages: &'a [Outgoing], shared: &'a Shared<'_>) -> Self {
        /// An array of which no element says anything is left out.
        fn said<T>(all: impl Iterator<Item = Option<T>> + Clone) -> Option<Vec<Option<T>>> {
            all.clone().any(|one| one.is_some()).then(|| all.collect())
        }
        let keys =
            |of: fn(&Keys) -> &Option<String>| said(messages.iter().map(move |one| shared.key_of(one, of)));
        Self {
            messages: messages.iter().map(|message| Json(&message.body)).collect(),
            headers: said(messages.iter().map(|message| shared.headers_of(message))),
            unique_keys: keys(|keys| &keys.unique),
            group_keys: keys(|keys| &keys.group),
            exclusive_keys: keys(|keys| &keys.exclusive),
        }
    }
}

/// Sends what `message` encodes to.
pub(crate) async fn send<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    message: &Outgoing,
    options: &SendOptions,
) -> Result<MessageId> {
    let what = format!("send to queue `{queue}`");
    let shared = Shared::of(options)?;
    let rows = shared.run(client, queue, &what, SEND, &One::of(message, &shared)).await?;
    call::column(only(&rows, &what)?, 0, &what)
}

/// Sends one message, and tells whether it is new.
pub(crate) async fn send_report<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    message: &Outgoing,
    options: &SendOptions,
) -> Result<SendReport> {
    let what = format!("send to queue `{queue}`");
    let shared = Shared::of(options)?;
    let rows = shared.run(client, queue, &what, SEND_REPORT, &One::of(message, &shared)).await?;
    report(only(&rows, &what)?, &what)
}

/// Sends many, all or none; a message without headers or keys of its own has those of the options.
pub(crate) async fn send_batch<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    messages: &[Outgoing],
    options: &SendOptions,
) -> Result<Vec<MessageId>> {
    let what = format!("send {} messages to queue `{queue}`", messages.len());
    let rows = batch(client, queue, messages, options, &what, SEND_BATCH).await?;
    rows.iter().map(|row| call::column(row, 0, &what)).collect()
}

/// Sends many, all or none but those whose key is taken, and tells of each whether it is new.
pub(crate) async fn send_batch_report<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    messages: &[Outgoing],
    options: &SendOptions,
) -> Result<Vec<SendReport>> {
    let what = format!("send {} messages to queue `{queue}`", messages.len());
    let rows = batch(client, queue, messages, options, &what, SEND_BATCH_REPORT).await?;
    rows.iter().map(|row| report(row, &what)).collect()
}

async fn batch<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    messages: &[Outgoing],
    options: &SendOptions,
    what: &str,
    call: Call,
) -> Result<Vec<Row>> {
    let shared = Shared::of(options)?;
    match shared.run(client, queue, what, call, &Many::of(messages, &shared)).await {
        Err(error) if error.kind() == ErrorKind::InvalidPayload => Err(blame(messages, error)),
        Err(error) if error.kind() == ErrorKind::KeyTaken => Err(named(error)),
        answer => answer,
    }
}

/// Sends whatever can be sent, and tells of each element what became of it; see [`crate::Queue::send_each`].
pub(crate) async fn send_each<C: GenericClient>(
    client: &C,
    queue: &QueueName,
    messages: Vec<Result<Outgoing>>,
    options: &SendOptions,
) -> Result<Vec<Result<SendReport>>> {
    let is_strict = options.on_conflict == Some(OnConflict::Error);
    // A taken key must not undo the others: it is skipped, and told as the error that it is.
    let lenient = if is_strict { &options.clone().on_conflict(OnConflict::Skip) } else { options };
    let mut answers: Vec<Option<Result<SendReport>>> = messages.iter().map(|_| None).collect();
    let mut good = Vec::new();
    let mut places = Vec::new();
    for (place, message) in messages.into_iter().enumerate() {
        match message {
            Ok(message) => {
                places.push(place);
                good.push(message);
            }
            Err(error) => answers[place] = Some(Err(error.at(place))),
        }
    }
    let reports = loop {
        match send_batch_report(client, queue, &good, lenient).await {
            Ok(reports) => break reports,
            // Refused by the database, and nothing was sent: try without it.
            Err(error) if error.kind() == ErrorKind::InvalidPayload => match error.index() {
                Some(index) => {
                    let place = places.remove(index);
                    good.remove(index);
                    answers[place] = Some(Err(error.at(place)));
                }
                None => return Err(error),
            },
            Err(error) => return Err(error),
        }
    };
    for (place, report) in places.into_iter().zip(reports) {
        answers[place] = Some(if is_strict && !report.outcome.is_new() {
            let sentence = format!("the unique_key is taken by message {}", report.id);
            Err(Error::new(ErrorKind::KeyTaken, sentence).at(place))
        } else {
            Ok(report)
        });
    }
    let missing = || Err(Error::new(ErrorKind::Database, "the database left a message unanswered"));
    Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(missing)).collect())
}

fn only<'a>(rows: &'a [Row], what: &str) -> Result<&'a Row> {
    rows.first().ok_or_else(|| Error::new(ErrorKind::Database, format!("cannot {what}: no answer")))
}

fn report(row: &Row, what: &str) -> Result<SendReport> {
    let word: String = call::column(row, 1, what)?;
    let outcome = SendOutcome::of(&word).ok_or_else(|| {
        Error::new(ErrorKind::Database, format!("the database answered `{word}` to a send"))
    })?;
    Ok(SendReport { id: call::column(row, 0, what)?, outcome })
}

/// The sentence begins with the place of the message, 1 for the first.
fn named(error: Error) -> Error {
    let text = error.to_string();
    let place = text.strip_prefix("message ").and_then(|rest| rest.split_once(": "));
    match place.and_then(|(place, _)| place.parse::<usize>().ok()) {
        Some(place) if place > 0 => error.at(place - 1),
        _ => error.at(0),
    }
}

/// The database refused an element and does not say which. Nesting is all that it is stricter about than
/// [`payload`], so the deepest one it is.
fn blame(messages: &[Outgoing], error: Error) -> Error {
    let deepest = messages.iter().enumerate().max_by_key(|(_, message)| depth(&message.body));
    match deepest {
        Some((index, _)) => error.at(index),
        None => error,
    }
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

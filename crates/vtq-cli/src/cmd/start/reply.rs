//! The two lines of `--pipe`: a message to the child, and its reply.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use vtq::{Context, Failure, Message, MessageId, Outcome};

use super::ending::Ended;

/// The longest wait that the database takes.
const LONGEST_WAIT: Duration = Duration::from_secs(36_500 * 86_400);

#[derive(Serialize)]
struct Request<'a> {
    msg_id: MessageId,
    read_ct: i32,
    attempt: i32,
    queue: &'a str,
    headers: Option<&'a RawValue>,
    message: &'a RawValue,
}

/// Writes a message as one line.
pub(super) fn request(message: &Message, context: &Context) -> Vec<u8> {
    let request = Request {
        msg_id: message.id(),
        read_ct: message.lease.read_ct,
        attempt: message.attempt,
        queue: context.queue().as_str(),
        headers: message.headers.as_deref(),
        message: &message.body,
    };
    let mut line = serde_json::to_vec(&request).expect("numbers, texts and JSON are JSON");
    // jsonb comes without line breaks: those between its tokens are gone, those in its strings are escaped.
    line.push(b'\n');
    line
}

#[derive(Deserialize)]
struct Reply {
    outcome: String,
    msg_id: Option<MessageId>,
    retry_after: Option<f64>,
    delay: Option<f64>,
    reason: Option<String>,
    error: Option<Value>,
}

/// Reads a reply. The error says what is wrong with it, and quotes none of it: it may hold the message.
pub(super) fn outcome(line: &[u8], id: MessageId, defer: Duration) -> Result<Ended, String> {
    let reply: Reply = serde_json::from_slice(line).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => format!(
            "the reply's fields are not as they should be (column {}): see `vtq start --help`",
            error.column()
        ),
        _ => format!("the reply is not JSON (column {})", error.column()),
    })?;
    if let Some(other) = reply.msg_id.filter(|other| *other != id) {
        return Err(format!("the reply is for message {other}, but message {id} was asked about"));
    }
    match reply.outcome.as_str() {
        "done" => Ok(Ended::done()),
        "defer" => {
            let delay = wait("delay", reply.delay)?.unwrap_or(defer);
            Ok(Ended::other("deferred", Outcome::Deferred { delay, reason: reply.reason }))
        }
        "retry" => {
            let failure = failure(&reply)?;
            let failure = match wait("retry_after", reply.retry_after)? {
                Some(wait) => failure.retry_after(wait),
                None => failure,
            };
            Ok(Ended::failed(word(&reply, "retry"), failure))
        }
        "permanent" => Ok(Ended::failed(word(&reply, "permanent"), failure(&reply)?.into_permanent())),
        "undecodable" => {
            let (message, fields) = texts(&reply)?;
            Ok(Ended::failed(word(&reply, "undecodable"), fill(Failure::undecodable(message), &fields)))
        }
        _ => Err("the reply's outcome is none of done, retry, defer, permanent and undecodable".to_owned()),
    }
}

fn failure(reply: &Reply) -> Result<Failure, String> {
    let (message, fields) = texts(reply)?;
    Ok(fill(Failure::new(message), &fields))
}

/// Returns the message of a reply's error, and the fields beside it.
fn texts(reply: &Reply) -> Result<(String, serde_json::Map<String, Value>), String> {
    let (message, fields) = match &reply.error {
        None | Some(Value::Null) => (None, serde_json::Map::new()),
        Some(Value::String(text)) => (Some(text.clone()), serde_json::Map::new()),
        Some(Value::Object(fields)) => (fields.get("message").map(text_of), fields.clone()),
        Some(_) => return Err("the reply's error is neither a text nor an object".to_owned()),
    };
    let message = message.or_else(|| reply.reason.clone());
    Ok((message.unwrap_or_else(|| "the command gave no reason".to_owned()), fields))
}

fn fill(mut failure: Failure, fields: &serde_json::Map<String, Value>) -> Failure {
    let text = |name| fields.get(name).filter(|value| !value.is_null()).map(text_of);
    if let Some(class) = text("class") {
        failure = failure.class(class);
    }
    if let Some(code) = text("code") {
        failure = failure.code(code);
    }
    if let Some(detail) = text("detail") {
        failure = failure.detail(detail);
    }
    failure
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn wait(field: &str, seconds: Option<f64>) -> Result<Option<Duration>, String> {
    let Some(seconds) = seconds else { return Ok(None) };
    match Duration::try_from_secs_f64(seconds) {
        Ok(wait) if wait <= LONGEST_WAIT => Ok(Some(wait)),
        _ => Err(format!("the reply's {field} is no number of seconds from 0 to {}", LONGEST_WAIT.as_secs())),
    }
}

/// The word for the log: the error's class if it looks like one, for it might be anything.
fn word(reply: &Reply, otherwise: &str) -> String {
    let class = reply.error.as_ref().and_then(|error| error.get("class")).and_then(Value::as_str);
    let is_plain = |class: &&str| {
        (1..=100).contains(&class.len())
            && class.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:- ".contains(&byte))
    };
    class.filter(is_plain).unwrap_or(otherwise).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Ended, String> {
        outcome(line.as_bytes(), 7, Duration::from_secs(30))
    }

    #[test]
    fn each_outcome_is_understood() {
        for line in [
            r#"{"outcome":"done"}"#,
            r#"{"msg_id":7,"outcome":"retry","retry_after":0.5,"error":"no luck","extra":[1]}"#,
            r#"{"outcome":"permanent","error":{"class":"KeyError","code":17,"message":"id","detail":null}}"#,
            r#"{"outcome":"undecodable"}"#,
        ] {
            assert!(read(line).is_ok(), "{line}");
        }
        let deferred = |line| match read(line).map(|ended| ended.outcome) {
            Ok(Outcome::Deferred { delay, reason }) => (delay.as_secs_f64(), reason),
            other => panic!("{other:?}"),
        };
        assert_eq!(deferred(r#"{"outcome":"defer"}"#), (30.0, None));
        assert_eq!(
            deferred(r#"{"outcome":"defer","delay":1.5,"reason":"busy"}"#),
            (1.5, Some("busy".into()))
        );
    }

    #[test]
    fn the_word_for_the_log_is_a_class_or_nothing() {
        let why = |line| read(line).ok().and_then(|ended| ended.why);

        assert_eq!(
            why(r#"{"outcome":"retry","error":{"class":"ValueError"}}"#).as_deref(),
            Some("ValueError")
        );
        assert_eq!(why(r#"{"outcome":"retry","error":{"class":"{\"a\":1}"}}"#).as_deref(), Some("retry"));
        assert_eq!(why(r#"{"outcome":"retry","error":"S3CRET"}"#).as_deref(), Some("retry"));
    }

    #[test]
    fn a_bad_reply_is_described_and_not_quoted() {
        for (line, words) in [
            ("S3CRET", "not JSON"),
            (r#"{"outcome":"S3CRET"}"#, "none of done"),
            (r#"{"outcome":7}"#, "not as they should be"),
            (r#"{}"#, "not as they should be"),
            (r#"{"outcome":"done","msg_id":8}"#, "for message 8"),
            (r#"{"outcome":"retry","retry_after":-1}"#, "retry_after"),
            (r#"{"outcome":"defer","delay":1e300}"#, "delay"),
            (r#"{"outcome":"retry","error":["S3CRET"]}"#, "neither a text"),
        ] {
            let fault = read(line).expect_err(line);
            assert!(fault.contains(words) && !fault.contains("S3CRET"), "{line}: {fault}");
        }
    }
}

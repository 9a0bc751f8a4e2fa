//! The options of a queue, between the command line and SQL.

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use crate::args::length::{Limit, seconds};
use crate::args::queue::{BackoffArgs, BackoffKind, GroupOnDead, OnAck, OnDeadline, OptionArgs};

/// Collects what was given, under the names that the options have in SQL. The database checks the values.
pub(super) fn given(args: &OptionArgs) -> anyhow::Result<Map<String, Value>> {
    let limit = |limit: Option<Limit>| limit.map(|Limit(length)| length.map_or(Value::Null, seconds));
    let on_ack = args.on_ack.map(|on_ack| match on_ack {
        OnAck::Archive => json!("archive"),
        OnAck::Delete => json!("delete"),
    });
    let group_on_dead = args.group_on_dead.map(|what| match what {
        GroupOnDead::Continue => json!("continue"),
        GroupOnDead::Pause => json!("pause"),
    });
    let flags = [
        ("max_attempts", args.max_attempts.map(|number| json!(number))),
        ("visibility_timeout", args.vt.map(seconds)),
        ("timeout", limit(args.timeout)),
        ("on_ack", on_ack),
        ("priorities", args.priorities.as_ref().map(|levels| json!(levels))),
        ("exclusive_limit", args.exclusive_limit.map(|number| json!(number))),
        ("group_on_dead", group_on_dead),
        ("max_in_flight", args.max_in_flight.map(|number| json!(number.0))),
        ("rate", args.rate.as_ref().map(|rate| rate.0.clone())),
        ("key_rate", args.key_rate.as_ref().map(|rate| rate.0.clone())),
        ("aging", limit(args.aging)),
        ("unlogged", args.unlogged.then_some(Value::Bool(true))),
        ("backoff", backoff(&args.backoff)?),
        ("archive_retention", limit(args.archive_retention)),
        ("attempts_retention", limit(args.attempts_retention)),
        ("dlq_retention", limit(args.dlq_retention)),
    ];
    let mut options: Map<String, Value> =
        flags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    for word in &args.option {
        let (name, text) =
            word.split_once('=').with_context(|| format!("option {word:?} has no value: give NAME=VALUE"))?;
        // What is not JSON is text, so that -o on_ack=delete needs no quotes within quotes.
        let value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        if options.insert(name.to_owned(), value).is_some() {
            bail!("option {name} is given twice");
        }
    }
    Ok(options)
}

/// Fills a backoff that is given in parts with the queue's own: setting one part keeps the others.
pub(super) fn complete_backoff(given: &mut Map<String, Value>, present: &Map<String, Value>) {
    let (Some(Value::Object(given)), Some(Value::Object(present))) =
        (given.get_mut("backoff"), present.get("backoff"))
    else {
        return;
    };
    for (part, value) in present {
        given.entry(part.clone()).or_insert_with(|| value.clone());
    }
}

/// Writes an option's value for people.
pub(super) fn shown(options: &Map<String, Value>, name: &str) -> String {
    match options.get(name) {
        Some(Value::Number(seconds))
            if ["timeout", "retention", "aging"].iter().any(|end| name.ends_with(end)) =>
        {
            format!("{seconds} s")
        }
        value => text(value),
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "none".into(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        Some(Value::Object(parts)) => parts
            .iter()
            .map(|(name, value)| format!("{name} {}", text(Some(value))))
            .collect::<Vec<_>>()
            .join(", "),
        Some(other) => other.to_string(),
    }
}

fn backoff(args: &BackoffArgs) -> anyhow::Result<Option<Value>> {
    if let Some(text) = &args.backoff {
        let whole = serde_json::from_str(text).context("--backoff is not JSON")?;
        return Ok(Some(whole));
    }
    let kind = args.backoff_kind.map(|kind| match kind {
        BackoffKind::Exponential => json!("exponential"),
        BackoffKind::Linear => json!("linear"),
        BackoffKind::Fixed => json!("fixed"),
    });
    let on_deadline = args.on_deadline.map(|choice| match choice {
        OnDeadline::Dead => json!("dead"),
        OnDeadline::Clamp => json!("clamp"),
    });
    let jitter =
        args.jitter.as_deref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
    let parts = [
        ("kind", kind),
        ("base", args.backoff_base.map(seconds)),
        ("max", args.backoff_max.map(seconds)),
        ("jitter", jitter),
        ("on_deadline", on_deadline),
    ];
    let parts: Map<String, Value> =
        parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Ok((!parts.is_empty()).then_some(Value::Object(parts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_options_by_their_names_in_sql() {
        let args = OptionArgs {
            timeout: Some(Limit(None)),
            vt: Some(std::time::Duration::from_millis(1500)),
            priorities: Some(vec![10, 0]),
            option: vec!["on_ack=delete".into(), "max_attempts=8".into()],
            ..OptionArgs::default()
        };

        let options = given(&args).expect("these are options");

        let expected = json!({
            "timeout": null, "priorities": [10, 0], "on_ack": "delete", "max_attempts": 8, "visibility_timeout": 1.5
        });
        assert_eq!(Value::Object(options).to_string(), expected.to_string());
    }

    #[test]
    fn an_option_given_twice_is_refused() {
        let args = OptionArgs {
            max_attempts: Some(3),
            option: vec!["max_attempts=8".into()],
            ..OptionArgs::default()
        };
        assert!(given(&args).is_err_and(|error| error.to_string().contains("given twice")));
    }

    #[test]
    fn a_part_of_a_backoff_keeps_the_others() {
        let mut given = Map::from_iter([("backoff".to_owned(), json!({"base": 1}))]);
        let present = Map::from_iter([("backoff".to_owned(), json!({"kind": "fixed", "base": 5}))]);

        complete_backoff(&mut given, &present);

        assert_eq!(given["backoff"], json!({"kind": "fixed", "base": 1}));
    }
}

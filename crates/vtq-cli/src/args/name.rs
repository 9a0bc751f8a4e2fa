//! How messages and leases are named: `QUEUE/ID`, or `QUEUE ID`.

use anyhow::{Context, bail};
use vtq::{Lease, MessageId, QueueName};

/// What belongs to one queue, in the order given.
pub(crate) type OfQueue<T> = (QueueName, Vec<T>);

/// Reads names of messages.
pub(crate) fn messages(words: &[String]) -> anyhow::Result<Vec<OfQueue<MessageId>>> {
    by_queue(words, id)
}

/// Reads one name of a message.
pub(crate) fn message(words: &[String]) -> anyhow::Result<(QueueName, MessageId)> {
    let mut queues = messages(words)?;
    match (queues.pop(), queues.is_empty()) {
        (Some((queue, ids)), true) if ids.len() == 1 => Ok((queue, ids[0])),
        _ => bail!("name one message: QUEUE/ID or QUEUE ID, such as orders/42"),
    }
}

/// Reads leases.
pub(crate) fn leases(words: &[String]) -> anyhow::Result<Vec<OfQueue<Lease>>> {
    by_queue(words, |text| {
        let refusal =
            || format!("{text:?} is not a lease: give ID:READ_CT, such as 42:1, as `vtq read` prints it");
        let (message, read_ct) = text.split_once(':').with_context(refusal)?;
        let read_ct = read_ct.parse().ok().filter(|ct| *ct > 0).with_context(refusal)?;
        Ok(Lease { id: message.parse().ok().with_context(refusal)?, read_ct })
    })
}

fn id(text: &str) -> anyhow::Result<MessageId> {
    let id = text.parse().ok().filter(|id| *id > 0);
    id.with_context(|| format!("{text:?} is not the id of a message: give a whole number, such as orders/42"))
}

/// A word with a `/` names its own queue; one without belongs to the queue named first.
fn by_queue<T: PartialEq>(
    words: &[String],
    read: impl Fn(&str) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<OfQueue<T>>> {
    let mut found: Vec<OfQueue<T>> = Vec::new();
    let mut bare: Option<QueueName> = None;
    for (place, word) in words.iter().enumerate() {
        let (queue, text) = match (word.split_once('/'), &bare) {
            (Some((queue, text)), _) => (QueueName::new(queue)?, text),
            (None, Some(queue)) => (queue.clone(), word.as_str()),
            (None, None) if place == 0 => {
                bare = Some(QueueName::new(word)?);
                continue;
            }
            (None, None) => bail!("{word:?} names no message: give QUEUE/ID, such as orders/42"),
        };
        let value = read(text)?;
        match found.iter_mut().find(|(name, _)| *name == queue) {
            // Named twice is named.
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => found.push((queue, vec![value])),
        }
    }
    if found.is_empty() {
        bail!("no message is named: give QUEUE/ID or QUEUE ID, such as orders/42");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn shown(text: &str) -> String {
        match messages(&words(text)) {
            Ok(found) => format!("{found:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn both_forms_name_the_same() {
        assert_eq!(shown("orders/1 orders/2"), shown("orders 1 2"));
        assert_eq!(shown("orders/1 mails/2 orders/3"), r#"[("orders", [1, 3]), ("mails", [2])]"#);
    }

    #[test]
    fn what_names_no_message_is_refused_in_words() {
        assert!(shown("orders").contains("no message is named"));
        assert!(shown("orders/1 2").contains("names no message"));
        assert!(shown("orders/x").contains("is not the id of a message"));
        assert!(shown("orders 0").contains("is not the id of a message"));
        assert!(shown("Orders/1").contains("try `orders`"));
        assert!(message(&words("orders 1 2")).is_err());
    }

    #[test]
    fn a_lease_is_an_id_and_a_delivery() {
        let found = leases(&words("orders 5:1 6:2")).expect("these are leases");

        assert_eq!(found[0].1, [Lease { id: 5, read_ct: 1 }, Lease { id: 6, read_ct: 2 }]);
        for text in ["orders 5", "orders 5:", "orders 5:0", "orders :1", "orders 5:1:1"] {
            assert!(leases(&words(text)).is_err(), "{text}");
        }
    }
}

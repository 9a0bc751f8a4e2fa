//! `--queues`: capsules, written as in pgbus.

use std::str::FromStr;

use vtq::QueueName;

/// The slots of a capsule that does not say how many.
const SLOTS: usize = 10;
/// The most slots that a capsule may have.
const MOST: usize = 10_000;

/// Capsules, as one `--queues` gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queues(pub(super) Vec<CapsuleArg>);

/// Queues in order of priority, and how many of their messages may run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CapsuleArg {
    pub(super) queues: Vec<QueueName>,
    pub(super) slots: usize,
}

impl FromStr for Queues {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A `;` may end the list, as it does in many a configuration file.
        let text = text.trim_end();
        let parts = text.strip_suffix(';').unwrap_or(text).split(';');
        parts.map(|part| part.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for CapsuleArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a capsule is empty: give at least one queue, as in \"orders: 5\"".to_owned());
        }
        let (names, slots) = match text.split_once(':') {
            Some((names, slots)) => (names, parse_slots(slots.trim())),
            None => (text, Ok(SLOTS)),
        };
        let queues = names.split(',').map(|name| parse_name(name.trim())).collect::<Result<_, _>>();
        let place = |why| format!("in \"{text}\": {why}");
        Ok(Self { queues: queues.map_err(place)?, slots: slots.map_err(place)? })
    }
}

fn parse_slots(text: &str) -> Result<usize, String> {
    let slots = text.parse().ok().filter(|slots| (1..=MOST).contains(slots));
    slots.ok_or_else(|| format!("\"{text}\" is no number of messages at once, which is 1 to {MOST}"))
}

fn parse_name(name: &str) -> Result<QueueName, String> {
    if name.is_empty() {
        return Err("the name of a queue is missing".to_owned());
    }
    if name.contains(char::is_whitespace) {
        return Err(format!("\"{name}\" is no name of a queue; is a `,` or a `;` missing?"));
    }
    QueueName::new(name).map_err(|error| error.to_string())
}

impl std::fmt::Display for CapsuleArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.queues.iter().map(QueueName::as_str).collect();
        write!(f, "{}: {}", names.join(", "), self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> Vec<String> {
        let queues: Queues = text.parse().expect(text);
        queues.0.iter().map(CapsuleArg::to_string).collect()
    }

    #[test]
    fn capsules_are_read_as_in_pgbus() {
        assert_eq!(show("critical: 5; default, mailers: 10"), ["critical: 5", "default, mailers: 10"]);
        assert_eq!(show("orders"), ["orders: 10"]);
        assert_eq!(show(" a:1;\n b , c ; "), ["a: 1", "b, c: 10"]);
    }

    #[test]
    fn a_mistake_is_shown_where_it_is() {
        for (text, words) in [
            ("", "a capsule is empty"),
            ("a;;b", "a capsule is empty"),
            ("a: x", "in \"a: x\": \"x\" is no number"),
            ("a; b: 0", "in \"b: 0\": \"0\" is no number"),
            ("a: 10001", "1 to 10000"),
            ("a: 1: 2", "\"1: 2\" is no number"),
            ("a:", "\"\" is no number"),
            (": 5", "in \": 5\": the name of a queue is missing"),
            ("a,,b", "in \"a,,b\": the name of a queue is missing"),
            ("Orders", "in \"Orders\": "),
            ("a b: 5", "is a `,` or a `;` missing?"),
        ] {
            let error = text.parse::<Queues>().expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}

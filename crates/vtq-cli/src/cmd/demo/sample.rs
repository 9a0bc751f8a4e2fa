//! What the demo sends: the lines of a file, or a built-in sample.

use std::fs;
use std::path::Path;

use anyhow::Context;
use vtq::Outgoing;

/// Webhooks as GitHub sends them; `README.md` beside the file says where they are from.
const BUILT_IN: &str = include_str!("sample.ndjson");

/// Reads all messages, so that a bad line is found before anything is sent.
pub(super) fn load(file: Option<&Path>) -> anyhow::Result<Vec<Outgoing>> {
    let Some(file) = file else { return parse(BUILT_IN) };
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let messages = parse(&text).with_context(|| format!("cannot send {name}"))?;
    anyhow::ensure!(!messages.is_empty(), "{name} holds no message: there is one JSON value a line to be");
    Ok(messages)
}

fn parse(text: &str) -> anyhow::Result<Vec<Outgoing>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(at, line)| Outgoing::from_json(line).with_context(|| format!("line {}", at + 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_sound() {
        assert_eq!(parse(BUILT_IN).unwrap().len(), 77);
    }

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        let error = parse("{}\n\n{\"a\":\n").unwrap_err();

        assert!(format!("{error:#}").starts_with("line 3: message is not JSON"), "{error:#}");
    }
}

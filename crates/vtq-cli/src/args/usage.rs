//! What is wrong with a command line, in one sentence.

use std::ffi::OsString;

use clap::error::ErrorKind;

/// Why there is nothing to run.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Help or version was asked for.
    Text(String),
    /// No command was given: help, as an error.
    Help(String),
    /// Something is wrong; one line.
    Wrong(String),
}

impl Refusal {
    /// Words what clap says, without any of the given words that may hold a password.
    pub(super) fn of(error: &clap::Error, words: &[OsString]) -> Self {
        let text = error.render().to_string();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Self::Text(text),
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Self::Help(text),
            // clap only sends help by itself when no option is set, and DATABASE_URL sets one.
            ErrorKind::MissingSubcommand if words.len() < 2 => {
                Self::Help(super::command().render_help().to_string())
            }
            _ => Self::Wrong(sentence(&text, words)),
        }
    }
}

fn sentence(text: &str, words: &[OsString]) -> String {
    let body = text.split("\n\nUsage:").next().unwrap_or(text);
    let body = body.split("\n\nFor more information").next().unwrap_or(body);
    let body = body.strip_prefix("error: ").unwrap_or(body).replace("\n\n", "; ");
    // clap quotes a value that breaks a rule as it is, control characters included.
    let mut line = body.split_whitespace().collect::<Vec<_>>().join(" ");
    line = line.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    for secret in words.iter().filter_map(|word| secret_in(&word.to_string_lossy())) {
        line = line.replace(&secret, "...");
    }
    format!("{line}; see `{} --help`", command_in(words))
}

/// The command that a line is about, as far as it names one.
fn command_in(words: &[OsString]) -> String {
    let mut command = super::command();
    let mut name = command.get_name().to_owned();
    for word in words.iter().skip(1) {
        if let Some(inner) = word.to_str().and_then(|word| command.find_subcommand(word)) {
            name = format!("{name} {}", inner.get_name());
            command = inner.clone();
        }
    }
    name
}

/// A URL or a keyword string may stand where it does not belong, such as in the place of a command.
fn secret_in(word: &str) -> Option<String> {
    let value = match word.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        _ => word,
    };
    let is_secret = value.contains("://") || value.to_ascii_lowercase().contains("password");
    (is_secret && !value.is_empty()).then(|| value.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(line: &[&str]) -> String {
        let error = crate::args::command().try_get_matches_from(line).expect_err("the line is wrong");
        match Refusal::of(&error, &line.iter().map(OsString::from).collect::<Vec<_>>()) {
            Refusal::Wrong(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_mistake_is_one_line_that_says_where_to_look() {
        let text = wrong(&["vtq", "read", "orders", "--qty", "0"]);

        assert_eq!(text, "invalid value '0' for '--qty <N>': 0 is not in 1..=10000; see `vtq read --help`");
        assert!(wrong(&["vtq", "dlq", "prge"]).contains("similar subcommand exists: 'purge'"));
        assert!(wrong(&["vtq", "read", "a\nb"]).contains("is not a queue name"));
    }

    #[test]
    fn no_password_is_quoted() {
        for line in [
            &["vtq", "postgres://u:P4SSW0RD@h/d"][..],
            &["vtq", "queues", "postgres://u:P4SSW0RD@h/d"],
            &["vtq", "queues", "--url=postgres://u:P4SSW0RD@h/d"],
            &["vtq", "queues", "--exact=postgres://u:P4SSW0RD@h/d"],
            &["vtq", "read", "host=h password=P4SSW0RD"],
            &["vtq", "read", "orders", "--qty", "postgres://u:P4SSW0RD@h/d"],
        ] {
            let text = wrong(line);
            assert!(!text.contains("P4SS"), "{text}");
        }
    }
}

//! The help of `vtq` itself: the commands in groups, as somebody meets them.

use std::fmt::Write;

use clap::Command;

/// The commands in groups. A test makes sure that none is left out.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Set up", &["demo", "migrate", "queue", "pause", "resume", "schedule"]),
    ("Send and work", &["send", "start"]),
    ("For scripts: read and settle", &["read", "peek", "ack", "fail", "extend", "defer", "release"]),
    (
        "Look and mend",
        &["queues", "status", "explain", "attempts", "retry", "cancel", "dlq", "lint", "backoff", "maintain"],
    ),
    ("More", &["bench", "completions", "help"]),
];

const REST: &str = "\
Exit codes:
  0 done · 1 nothing matched: an unknown id, a lost lease, an empty list · 2 failed · 130 interrupted

Examples:
  vtq demo
  vtq migrate && vtq queue create orders --max-attempts 8
  vtq send orders '{\"order\": 7}'
  vtq start --queues orders --exec ./handle-order
  vtq queues
  vtq explain orders/42
  vtq dlq show orders/42 && vtq dlq retry orders/42

A message is named QUEUE/ID or QUEUE ID. Lengths of time are written 500ms, 30s, 5m, 1h30m, 7d; a bare number is
seconds. `vtq help COMMAND` tells more about a command, `vtq COMMAND -h` less.";

/// Gives the command its help.
pub(super) fn arrange(command: Command) -> Command {
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{title}:");
        for name in names {
            let about = match *name {
                "help" => "Tell more about a command".into(),
                _ => command
                    .find_subcommand(name)
                    .and_then(Command::get_about)
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            };
            let about = about.trim_end_matches('.');
            let _ = writeln!(text, "  {name:<12} {about}");
        }
        text.push('\n');
    }
    command.subcommand_required(true).arg_required_else_help(true).help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options of every command:\n{{options}}\n\n{REST}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_a_group_and_says_what_it_does() {
        let command = <crate::args::Args as clap::CommandFactory>::command();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();

        for subcommand in command.get_subcommands() {
            assert!(grouped.contains(&subcommand.get_name()), "{} is in no group", subcommand.get_name());
            let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
            assert!((10..80).contains(&about.chars().count()), "{}: {about}", subcommand.get_name());
        }
        for name in grouped.iter().filter(|name| **name != "help") {
            assert!(command.find_subcommand(name).is_some(), "there is no command {name}");
        }
    }
}

//! Quoting for commands that a person pastes into a shell.

use std::path::Path;

/// `text` as one word of a POSIX shell; left bare where that is safe, since it is easier to read.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A path as one word.
pub(crate) fn path(path: &Path) -> String {
    word(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_needed() {
        assert_eq!(word("/tmp/vtq-dev-1-0"), "/tmp/vtq-dev-1-0");
        assert_eq!(word(""), "''");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("it's $HOME"), r"'it'\''s $HOME'");
    }
}

//! A page of Markdown, as it should be.

use super::psql::Session;
use super::tables;

const SQL: &str = "```sql";
/// A block that must run, and whose answers differ from server to server.
const UNSHOWN: &str = "```sql unshown";
const ANSWER: &str = "```text";
const FENCE: &str = "```";
const GENERATED: &str = "<!-- generated: ";
const END: &str = "<!-- end of generated -->";

/// Runs the statements of a page, in order, and returns the page with their answers and its generated tables.
///
/// An answer is the ```` ```text ```` block that follows a ```` ```sql ```` block; one that answers nothing has
/// none.
pub(super) async fn filled_in(page: &str, session: &mut Session) -> String {
    let mut filled = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        filled.push_str(line);
        filled.push('\n');
        if line == SQL || line == UNSHOWN {
            let block = until(&mut lines, FENCE);
            filled.push_str(&format!("{block}{FENCE}\n"));
            if lines.peek() == Some(&ANSWER) {
                lines.next();
                until(&mut lines, FENCE);
            }
            let answer = session.answer(&block).await;
            if line == UNSHOWN {
                assert!(!answer.contains("ERROR:"), "{block}\n{answer}");
            } else if !answer.is_empty() {
                filled.push_str(&format!("{ANSWER}\n{answer}{FENCE}\n"));
            }
        } else if let Some(name) = line.strip_prefix(GENERATED).and_then(|rest| rest.strip_suffix(" -->")) {
            until(&mut lines, END);
            filled.push_str(&format!("\n{}\n\n{END}\n", tables::generated(name, session).await));
        }
    }
    filled
}

/// Takes the lines before `end`, and `end` itself, which is not returned.
fn until<'a>(lines: &mut impl Iterator<Item = &'a str>, end: &str) -> String {
    let mut taken = String::new();
    for line in lines {
        if line == end {
            return taken;
        }
        taken.push_str(line);
        taken.push('\n');
    }
    panic!("the page ends before `{end}`, after:\n{taken}");
}

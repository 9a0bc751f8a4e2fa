//! Statements and their answers, laid out as psql does.

use std::fmt::Write as _;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, SimpleQueryMessage};
use vtq_tests::TestDb;

/// What stands for an instant.
const INSTANT: &str = "<instant>";

/// One connection to a database of its own.
pub(super) struct Session {
    pub(super) client: Client,
    is_rolled_back: bool,
    _db: TestDb,
}

/// The rows of one statement, as text.
struct Rows {
    columns: Vec<(String, Type)>,
    cells: Vec<Vec<String>>,
}

impl Session {
    /// A session whose statements are committed one by one.
    pub(super) async fn plain(db: TestDb) -> Self {
        Self { client: db.client().await, is_rolled_back: false, _db: db }
    }

    /// A session of one transaction that is never committed; a statement that fails is undone alone.
    pub(super) async fn rolled_back(db: TestDb) -> Self {
        let client = db.client().await;
        client.batch_execute("BEGIN").await.unwrap();
        Self { client, is_rolled_back: true, _db: db }
    }

    /// What psql prints for a block of statements, each of which ends a line with `;` or `\gx`.
    pub(super) async fn answer(&mut self, block: &str) -> String {
        let mut answers = Vec::new();
        let mut statement = String::new();
        for line in block.lines() {
            let (text, is_expanded) = match line.strip_suffix("\\gx") {
                Some(text) => (text, true),
                None => (line, false),
            };
            let _ = writeln!(statement, "{text}");
            if is_expanded || text.ends_with(';') {
                answers.push(self.answer_to(&statement, is_expanded).await);
                statement.clear();
            }
        }
        assert!(statement.trim().is_empty(), "a statement without its end:\n{statement}");
        answers.retain(|answer| !answer.is_empty());
        answers.join("\n")
    }

    async fn answer_to(&mut self, statement: &str, is_expanded: bool) -> String {
        if self.is_rolled_back {
            self.client.batch_execute("SAVEPOINT statement").await.unwrap();
        }
        let answer = match self.rows(statement).await {
            Ok(rows) if rows.columns.is_empty() => String::new(),
            Ok(rows) if is_expanded => rows.expanded(),
            Ok(rows) => rows.aligned(),
            Err(error) => {
                if self.is_rolled_back {
                    self.client.batch_execute("ROLLBACK TO SAVEPOINT statement").await.unwrap();
                }
                refusal(statement, &error)
            }
        };
        if self.is_rolled_back {
            self.client.batch_execute("RELEASE SAVEPOINT statement").await.unwrap();
        }
        answer
    }

    async fn rows(&self, statement: &str) -> Result<Rows, Error> {
        // The simple protocol answers in text and tells no types; preparing tells them.
        let prepared = self.client.prepare(statement.trim_end().trim_end_matches(';')).await?;
        let columns: Vec<_> = prepared
            .columns()
            .iter()
            .map(|column| (column.name().to_owned(), column.type_().clone()))
            .collect();
        let mut cells = Vec::new();
        for message in self.client.simple_query(statement).await? {
            if let SimpleQueryMessage::Row(row) = message {
                cells.push((0..columns.len()).map(|i| cell(row.get(i))).collect());
            }
        }
        Ok(Rows { columns, cells })
    }
}

impl Rows {
    fn aligned(&self) -> String {
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|i| self.width(i).max(length(&self.columns[i].0))).collect();
        let mut lines = vec![
            joined(
                widths.iter().zip(&self.columns).map(|(width, (name, _))| format!(" {name:^width$} ")),
                "|",
            ),
            joined(widths.iter().map(|width| "-".repeat(width + 2)), "+"),
        ];
        for row in &self.cells {
            let cells = widths.iter().zip(&self.columns).zip(row).map(|((width, (_, of)), cell)| {
                if is_number(of) { format!(" {cell:>width$} ") } else { format!(" {cell:<width$} ") }
            });
            lines.push(joined(cells, "|"));
        }
        lines.push(match self.cells.len() {
            1 => "(1 row)".into(),
            count => format!("({count} rows)"),
        });
        lines.join("\n") + "\n"
    }

    fn expanded(&self) -> String {
        if self.cells.is_empty() {
            return "(0 rows)\n".into();
        }
        let label = self.columns.iter().map(|(name, _)| length(name)).max().unwrap_or_default();
        let value = (0..self.columns.len()).map(|i| self.width(i)).max().unwrap_or_default();
        let mut text = String::new();
        for (number, row) in self.cells.iter().enumerate() {
            let title = format!("-[ RECORD {} ]", number + 1);
            let rule = format!("{}+{}", "-".repeat(label + 1), "-".repeat(value + 1));
            let _ = writeln!(text, "{title}{}", rule.get(title.len()..).unwrap_or_default());
            for ((name, _), cell) in self.columns.iter().zip(row) {
                text.push_str(format!("{name:<label$} | {cell}").trim_end());
                text.push('\n');
            }
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        self.cells.iter().map(|row| length(&row[column])).max().unwrap_or_default()
    }
}

fn joined(cells: impl Iterator<Item = String>, between: &str) -> String {
    cells.collect::<Vec<_>>().join(between).trim_end().to_owned()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn is_number(of: &Type) -> bool {
    [Type::INT2, Type::INT4, Type::INT8, Type::FLOAT4, Type::FLOAT8, Type::NUMERIC, Type::OID].contains(of)
}

/// As psql prints it with `\set SHOW_CONTEXT never`, with the SQLSTATE in front.
fn refusal(statement: &str, error: &Error) -> String {
    let Some(error) = error.as_db_error() else { panic!("{statement}\n{error:?}") };
    let mut text = format!("ERROR:  {}: {}\n", error.code().code(), error.message());
    for (title, part) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
        if let Some(part) = part {
            let _ = writeln!(text, "{title}:  {part}");
        }
    }
    mask(&text)
}

fn cell(value: Option<&str>) -> String {
    let text = mask(value.unwrap_or_default());
    assert!(!text.contains('\n'), "a value of several lines is not laid out: {text}");
    text
}

/// Puts a word in the place of every instant: `2026-01-31 10:00:00.5+00` or `2026-01-31T10:00:00.5Z`.
fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let length = instant(rest).unwrap_or(0);
        if length > 0 {
            masked.push_str(INSTANT);
            rest = &rest[length..];
        } else {
            let mut chars = rest.chars();
            masked.extend(chars.next());
            rest = chars.as_str();
        }
    }
    masked
}

/// The length of the instant that a text begins with.
fn instant(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_like = |pattern: &str, at: usize| {
        pattern.bytes().enumerate().all(|(i, wanted)| match (wanted, bytes.get(at + i)) {
            (b'0', Some(byte)) => byte.is_ascii_digit(),
            (wanted, byte) => byte == Some(&wanted),
        })
    };
    if !is_like("0000-00-00", 0) || !matches!(bytes.get(10), Some(b' ' | b'T')) || !is_like("00:00:00", 11) {
        return None;
    }
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-' | b':' | b'Z');
    let length = 19 + bytes[19..].iter().take_while(|byte| is_part(byte)).count();
    // Of the sentence that it stands in, not of the instant.
    Some(text[..length].trim_end_matches([':', '.', '-']).len())
}

#[test]
fn instants_are_masked_and_nothing_else() {
    for (text, masked) in [
        ("2026-01-31 10:00:00+00", "<instant>"),
        (r#"{"at": "2026-01-31T10:00:00.123456Z", "n": 1}"#, r#"{"at": "<instant>", "n": 1}"#),
        (
            "before 2026-01-31 10:00:00.5+05:30, 2026-01-31 and 10:00",
            "before <instant>, 2026-01-31 and 10:00",
        ),
        ("00:00:05 é 2026", "00:00:05 é 2026"),
    ] {
        assert_eq!(mask(text), masked);
    }
}

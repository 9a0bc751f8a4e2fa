//! The files of `sql/` keep their form: a header, one object named like the file, its comment, a line in `sql.rs`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

/// A file of `sql/`: its path there without the ending, and its text.
struct File {
    name: String,
    text: String,
}

impl File {
    /// The file's name without folder and ending: that of its object.
    fn object(&self) -> &str {
        self.name.rsplit('/').next().unwrap()
    }

    fn is_migration(&self) -> bool {
        self.name.starts_with("migrations/")
    }
}

fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let mut files = Vec::new();
    for folder in fs::read_dir(&root).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
            let name = name.strip_suffix(".sql").unwrap_or_else(|| panic!("{name} is no SQL")).to_owned();
            files.push(File { name, text: fs::read_to_string(path).unwrap() });
        }
    }
    assert!(files.len() > 70, "{} files", files.len());
    files
}

/// The text between the `$$` or `$sql$` of a function, which is no statement of the file.
fn without_bodies(text: &str) -> String {
    text.split("$$").step_by(2).collect()
}

#[test]
fn every_file_is_named_once_in_sql_rs() {
    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sql.rs")).unwrap();

    for file in files() {
        assert_eq!(list.matches(&format!("\"{}\"", file.name)).count(), 1, "{}", file.name);
    }
}

#[test]
fn every_file_begins_by_saying_what_it_is() {
    for file in files() {
        let first = file.text.lines().next().unwrap();
        let object = file.object();
        let expected = match file.is_migration() {
            true => format!("-- {}: ", object.replacen('_', " ", 1)),
            false => format!("-- {object}: "),
        };
        assert!(first.starts_with(&expected), "{}: {first}", file.name);
    }
}

#[test]
fn every_file_creates_one_object_and_that_has_its_name() {
    for file in files().iter().filter(|file| !file.is_migration()) {
        let text = without_bodies(&file.text);
        let created: Vec<&str> = text
            .lines()
            // An index is part of its table.
            .filter(|line| line.starts_with("CREATE ") && !line.starts_with("CREATE INDEX "))
            .collect();
        assert_eq!(created.len(), 1, "{}: {created:?}", file.name);
        let object = format!(" {}", file.object());
        let is_named = created[0].split('(').next().is_some_and(|head| head.trim_end().ends_with(&object));
        assert!(is_named, "{}: {}", file.name, created[0]);
    }
}

#[test]
fn every_function_may_be_installed_again() {
    for file in files() {
        if file.text.contains("\nRETURNS ") {
            assert!(file.text.contains("\nCREATE OR REPLACE FUNCTION "), "{}", file.name);
        }
    }
}

#[test]
fn every_object_has_a_comment() {
    for file in files().iter().filter(|file| !file.is_migration()) {
        let kinds = ["FUNCTION", "TABLE"].map(|kind| format!("\nCOMMENT ON {kind} {}", file.object()));
        assert!(kinds.iter().any(|comment| file.text.contains(comment)), "{}", file.name);
    }
}

#[test]
fn every_own_sqlstate_is_explained() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/README.md")).unwrap();

    for file in files() {
        for (at, _) in file.text.match_indices("ERRCODE = '") {
            let code = &file.text[at + 11..at + 16];
            assert!(readme.contains(&format!("| `{code}` |")), "{} raises {code}", file.name);
        }
    }
}

#[test]
fn no_line_ends_in_blanks_and_no_file_without_a_line_feed() {
    for file in files() {
        let ragged = file.text.lines().find(|line| line.ends_with([' ', '\t']) || line.contains('\t'));
        assert_eq!(ragged, None, "{}", file.name);
        assert!(file.text.ends_with('\n'), "{}", file.name);
    }
}

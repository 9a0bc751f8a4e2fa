//! `docs/guarantees.md` names the test that holds each promise: a name without a test promises nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the tests of each prefix are.
const FOLDERS: [(&str, &str); 4] = [
    ("it", "tests/it"),
    ("chaos", "tests/chaos"),
    ("secrets", "tests/secrets"),
    ("cli", "crates/vtq-cli/tests"),
];

#[test]
fn every_promise_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    let mut missing = Vec::new();
    let mut named = 0;

    for name in page.split('`').skip(1).step_by(2) {
        let Some((prefix, test)) = name.split_once("::") else { continue };
        let folder = FOLDERS.iter().find(|(of, _)| *of == prefix).map(|(_, folder)| root.join(folder));
        named += 1;
        if !folder.is_some_and(|folder| has_function(&folder, test)) {
            missing.push(name);
        }
    }

    assert!(missing.is_empty(), "no such test: {missing:?}");
    assert!(named > 30, "only {named} tests are named: is the page read?");
}

fn has_function(folder: &Path, name: &str) -> bool {
    files(folder).iter().any(|file| fs::read_to_string(file).unwrap().contains(&format!("fn {name}(")))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
    found
}

//! The pages of `docs/` that show SQL: every statement is run, in order, and the page must show what came back.
//!
//! `bash docs/generate` writes the answers into the pages instead of comparing them. Nothing but instants is
//! masked, so a page shows nothing else that differs from run to run.

mod clock;
mod guarantees;
mod page;
mod psql;
mod tables;

use std::path::Path;
use std::{env, fs};

use vtq_tests::TestDb;

use self::psql::Session;

/// A page as it was when the tests were built: they may run where the repository is not.
struct Page {
    name: &'static str,
    text: &'static str,
}

macro_rules! page {
    ($name:literal) => {
        Page { name: $name, text: include_str!(concat!("../../docs/", $name)) }
    };
}

#[tokio::test]
async fn sql_api_shows_what_the_database_answers() {
    check(&page!("sql-api.md"), Session::plain).await;
}

#[tokio::test]
async fn keys_and_order_show_what_the_database_answers() {
    check(&page!("keys-and-order.md"), Session::plain).await;
}

#[tokio::test]
async fn states_in_sql_show_what_the_database_answers() {
    check(&page!("states.md"), Session::plain).await;
}

#[tokio::test]
async fn dead_letters_in_sql_show_what_the_database_answers() {
    check(&page!("dead-letters.md"), Session::plain).await;
}

#[tokio::test]
async fn keys_and_order_in_sql_show_what_the_database_answers() {
    check(&page!("keys-and-order.md"), Session::plain).await;
}

#[tokio::test]
async fn schedules_in_sql_show_what_the_database_answers() {
    check(&page!("schedules.md"), Session::plain).await;
}

#[tokio::test]
async fn retries_in_sql_show_what_the_database_answers() {
    check(&page!("retries.md"), Session::plain).await;
}

/// This page creates roles, which belong to the whole server: nothing of it is committed.
#[tokio::test]
async fn operations_in_sql_show_what_the_database_answers() {
    check(&page!("operations.md"), Session::rolled_back).await;
}

async fn check(page: &Page, open: impl AsyncFnOnce(TestDb) -> Session) {
    let is_writing = env::var("VTQ_DOCS").is_ok_and(|mode| mode == "write");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page.name);
    let text = if is_writing { fs::read_to_string(&path).unwrap() } else { page.text.to_owned() };
    let mut session = open(TestDb::new().await).await;

    let right = page::filled_in(&text, &mut session).await;

    if is_writing {
        fs::write(&path, right).unwrap();
    } else if let Some(difference) = difference(&text, &right) {
        panic!(
            "docs/{} is out of date: run `bash docs/generate`, and read what it changes\n{difference}",
            page.name
        );
    }
}

/// The first lines in which two texts differ.
fn difference(got: &str, expected: &str) -> Option<String> {
    let mut lines = got.lines();
    let mut number = 0;
    for expected in expected.lines() {
        number += 1;
        let got = lines.next().unwrap_or_default();
        if got != expected {
            return Some(format!("line {number}\n  the page: {got}\n  expected: {expected}"));
        }
    }
    lines.next().map(|got| format!("line {}\n  the page: {got}\n  expected: nothing more", number + 1))
}

//! The server is one that vtq supports, and the one that was asked for.

use std::env;
use std::path::Path;
use std::process::Command;

use super::session::Session;

#[tokio::test]
async fn the_server_is_the_one_that_was_asked_for() {
    let s = Session::empty().await;
    let version: String = s.value("SHOW server_version").await;
    assert!(s.major().await >= 14, "{version}");
    let external = env::var("VTQ_TEST_DATABASE_URL").is_ok_and(|url| !url.is_empty());
    let Some(folder) = env::var_os("VTQ_PG_BIN").filter(|_| !external) else { return };

    let output = Command::new(Path::new(&folder).join("postgres")).arg("--version").output().unwrap();

    let text = String::from_utf8(output.stdout).unwrap();
    // `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`
    let asked_for = text.trim().split_once("PostgreSQL) ").map(|(_, version)| version);
    assert_eq!(asked_for, Some(version.as_str()));
}

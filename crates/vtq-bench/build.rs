//! Finds the migrations of sqlxmq, which are files of its package and no part of its code.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_PEERS").is_none() {
        return;
    }
    let cargo = std::env::var("CARGO").expect("cargo sets CARGO for build scripts");
    let manifest =
        std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR for build scripts");
    // Not --offline: on a machine that is new to the workspace, what other members need is not downloaded yet.
    let platform = std::env::var("TARGET").expect("cargo sets TARGET for build scripts");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &platform])
        .arg("--manifest-path")
        .arg(Path::new(&manifest).join("Cargo.toml"))
        .output()
        .expect("cargo metadata can be started");
    assert!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON");
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    let sqlxmq = packages
        .iter()
        .find(|package| package["name"] == "sqlxmq")
        .and_then(|package| package["manifest_path"].as_str())
        .expect("sqlxmq is a dependency");
    let folder = Path::new(sqlxmq).with_file_name("migrations");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("sqlxmq ships its migrations")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(".up.sql"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "sqlxmq ships no migrations");
    let sql: Vec<String> =
        files.iter().map(|file| std::fs::read_to_string(file).expect("a migration can be read")).collect();
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    std::fs::write(Path::new(&out).join("sqlxmq.sql"), sql.join("\n;\n")).expect("OUT_DIR can be written to");
}

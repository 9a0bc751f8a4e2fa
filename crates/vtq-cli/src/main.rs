//! The `vtq` command.
fn main() {}

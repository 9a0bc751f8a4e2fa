//! The library's public face: migrating, the verbs, and the verbs on a transaction of the caller's.

mod copy;
mod migrate;
mod payload;
mod transaction;
mod unique;
mod verbs;

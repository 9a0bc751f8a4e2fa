//! The commands, a file each.

pub(crate) mod demo;
pub(crate) mod start;

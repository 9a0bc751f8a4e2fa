//! pooler

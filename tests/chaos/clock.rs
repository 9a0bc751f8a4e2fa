//! The one clock that all processes of a machine share.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
pub(crate) type Micros = u64;

/// The moment.
pub(crate) fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(since.as_micros()).expect("it is long before the year 586000")
}

//! The clock that times of several machines are compared by.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock of stamps and of the kernel's times of arrival: time since 1970.
pub fn wall_clock() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

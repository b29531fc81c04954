//! The clock for comparing times of several machines.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the time since 1970, on the clock of stamps and of the kernel's arrival times.
pub fn wall_clock() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

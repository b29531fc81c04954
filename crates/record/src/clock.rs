//! The time of day of monotonic times.

use std::time::{Instant, SystemTime};

use portunus_files::mjr::UnixMicros;

/// Converts monotonic times to the time of day. Their distances stay the same even if the system's
/// clock is set meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    is: UnixMicros,
}

impl Clock {
    pub(crate) fn now() -> Self {
        Self {
            start: Instant::now(),
            is: SystemTime::now().into(),
        }
    }

    /// Returns the monotonic time of its creation.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Returns the time of day of its creation.
    pub(crate) fn started(&self) -> UnixMicros {
        self.is
    }

    pub(crate) fn at(&self, time: Instant) -> UnixMicros {
        // Rounding to microseconds comes last, so that distances stay exact.
        let is = u128::from(self.is.0) * 1_000;
        let after = time.saturating_duration_since(self.start).as_nanos();
        let before = self.start.saturating_duration_since(time).as_nanos();
        let micros = is.saturating_add(after).saturating_sub(before) / 1_000;
        UnixMicros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

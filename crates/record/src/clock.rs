//! The time of day of what came at a monotonic time.

use std::time::{Instant, SystemTime};

use portunus_files::mjr::UnixMicros;

/// Tells the time of day of what came at a monotonic time: distances stay what they are, whatever is done to the system's clock
/// meanwhile.
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

    /// When it was made.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// The time of day when it was made.
    pub(crate) fn started(&self) -> UnixMicros {
        self.is
    }

    pub(crate) fn at(&self, time: Instant) -> UnixMicros {
        // Whole microseconds only at the end: distances stay what they are.
        let is = u128::from(self.is.0) * 1_000;
        let after = time.saturating_duration_since(self.start).as_nanos();
        let before = self.start.saturating_duration_since(time).as_nanos();
        let micros = is.saturating_add(after).saturating_sub(before) / 1_000;
        UnixMicros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

//! The lowest bitrate that viewers can take.

use std::time::{Duration, Instant};

/// The length of a period.
const PERIOD: Duration = Duration::from_secs(1);

/// The lowest value of this second and the last one.
#[derive(Debug, Default)]
pub struct Lowest {
    present: Option<(u64, Instant)>,
    /// The lowest value of the period before, and when that ended.
    before: Option<(u64, Instant)>,
}

impl Lowest {
    /// Adds a value.
    #[inline]
    pub fn note(&mut self, value: u64, now: Instant) {
        let (lowest, since) = self.present.unwrap_or((value, now));
        self.present = Some((lowest.min(value), since));
    }

    /// When the period ends.
    #[inline]
    pub fn due(&self) -> Option<Instant> {
        self.present.map(|(_, since)| since + PERIOD)
    }

    /// Returns the lowest value, and starts a new period.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        let (present, since) = self.present.take()?;
        let before = self.before.replace((present, now));
        let recent = before.filter(|(_, ended)| since.saturating_duration_since(*ended) < PERIOD);
        Some(recent.map_or(present, |(before, _)| before.min(present)))
    }
}

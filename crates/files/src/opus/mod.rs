//! Opus, and a writer of Ogg Opus files (RFC 6716, RFC 7845).
//!
//! The file of an [`OggOpusWriter`] is playable at any time, also if it is torn: no byte is changed
//! afterwards, and a page is written at least every second.

mod gap;
mod head;
mod packet;
mod writer;

use std::time::Duration;

pub use head::{OpusHead, OpusTags};
pub use packet::packet_duration;
pub use writer::{Counts, OggOpusError, OggOpusWriter, Placed};

pub(crate) use gap::Gap;
pub(crate) use head::channels_of_head;
pub(crate) use packet::Toc;

/// A time or a length in samples of 48 kHz, Opus's clock at all rates (RFC 7587 section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct OpusTime(pub u64);

impl OpusTime {
    /// The samples in a second.
    pub const RATE: u32 = 48_000;

    /// Returns the sum, which saturates.
    #[must_use]
    pub const fn plus(self, other: OpusTime) -> OpusTime {
        OpusTime(self.0.saturating_add(other.0))
    }

    /// Returns the time since `earlier`, or zero if that is later.
    #[must_use]
    pub const fn since(self, earlier: OpusTime) -> OpusTime {
        OpusTime(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for OpusTime {
    fn from(duration: Duration) -> Self {
        let samples = duration.as_nanos() * u128::from(Self::RATE) / 1_000_000_000;
        OpusTime(u64::try_from(samples).unwrap_or(u64::MAX))
    }
}

impl From<OpusTime> for Duration {
    fn from(OpusTime(samples): OpusTime) -> Self {
        let rate = u64::from(OpusTime::RATE);
        let nanos = samples % rate * 1_000_000_000 / rate;
        Duration::from_secs(samples / rate).saturating_add(Duration::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_become_samples_and_back() {
        for (millis, samples) in [(0, 0), (20, 960), (2_000, 96_000), (3_600_000, 172_800_000)] {
            let duration = Duration::from_millis(millis);
            assert_eq!(OpusTime::from(duration), OpusTime(samples));
            assert_eq!(Duration::from(OpusTime(samples)), duration);
        }
        assert_eq!(OpusTime::from(Duration::from_micros(2_500)), OpusTime(120));
    }
}

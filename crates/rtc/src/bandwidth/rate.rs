//! Bitrates.

use std::iter::Sum;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A bitrate. Sums and differences saturate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DataRate(u64);

const NANOS: u128 = 1_000_000_000;

impl DataRate {
    /// Nothing.
    pub const ZERO: DataRate = DataRate(0);

    /// Makes a rate from bit/s.
    pub const fn bps(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// Makes a rate from kbit/s.
    pub const fn kbps(kilobits_per_second: u64) -> Self {
        Self(kilobits_per_second.saturating_mul(1_000))
    }

    /// Returns the rate in bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Returns the rate of `bytes` in `time`, or `None` if `time` is zero.
    pub fn of(bytes: u64, time: Duration) -> Option<Self> {
        let bits = u128::from(bytes) * 8 * NANOS;
        let rate = bits.checked_div(time.as_nanos())?;
        Some(Self(u64::try_from(rate).unwrap_or(u64::MAX)))
    }

    /// Returns the whole bytes that pass in `time`.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = u128::from(self.0).saturating_mul(time.as_nanos()) / (8 * NANOS);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the time that `bytes` take, at most an hour, which stands for "never".
    pub fn time_for(self, bytes: u64) -> Duration {
        const NEVER: Duration = Duration::from_secs(3_600);
        let nanos = (u128::from(bytes) * 8 * NANOS).checked_div(u128::from(self.0));
        let nanos = nanos.and_then(|nanos| u64::try_from(nanos).ok());
        nanos.map_or(NEVER, Duration::from_nanos).min(NEVER)
    }

    /// Returns the rate multiplied by `factor`, which must not be negative.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl Add for DataRate {
    type Output = DataRate;

    fn add(self, other: DataRate) -> DataRate {
        DataRate(self.0.saturating_add(other.0))
    }
}

impl Sub for DataRate {
    type Output = DataRate;

    fn sub(self, other: DataRate) -> DataRate {
        DataRate(self.0.saturating_sub(other.0))
    }
}

impl Sum for DataRate {
    fn sum<I: Iterator<Item = DataRate>>(rates: I) -> DataRate {
        rates.fold(DataRate::ZERO, DataRate::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_times_belong_together() {
        let rate = DataRate::kbps(800);
        assert_eq!(rate.bytes_in(Duration::from_millis(10)), 1_000);
        assert_eq!(rate.time_for(1_000), Duration::from_millis(10));
        assert_eq!(DataRate::of(1_000, Duration::from_millis(10)), Some(rate));
        assert_eq!(DataRate::of(1, Duration::ZERO), None);
    }

    #[test]
    fn extremes_saturate() {
        let most = DataRate::bps(u64::MAX);
        assert_eq!(most + most, most);
        assert_eq!(DataRate::ZERO - most, DataRate::ZERO);
        assert_eq!(most.times(2.0), most);
        assert_eq!(most.bytes_in(Duration::MAX), u64::MAX);
        assert_eq!(DataRate::ZERO.time_for(1), Duration::from_secs(3_600));
    }
}

use std::time::Duration;

/// The time when a packet was sent: seconds as a fixed-point number of 6.18 bits, wrapping at 64 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AbsSendTime(u32);

impl AbsSendTime {
    const TICKS_PER_SECOND: u128 = 1 << 18;
    const MASK: u32 = 0x00ff_ffff;

    /// Makes the time `since` an epoch of the sender's choice.
    pub fn from_duration(since: Duration) -> Self {
        let ticks = since.as_nanos() * Self::TICKS_PER_SECOND / 1_000_000_000;
        // Only the low 24 bits matter.
        Self(ticks as u32 & Self::MASK)
    }

    /// Makes the time of a 64-bit NTP timestamp.
    pub const fn from_ntp(ntp: u64) -> Self {
        Self((ntp >> 14) as u32 & Self::MASK)
    }

    /// Parses an element's value. Returns `None` unless it has three bytes.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let [a, b, c] = *value.first_chunk::<3>()?;
        (value.len() == 3).then_some(Self(u32::from_be_bytes([0, a, b, c])))
    }

    /// Returns the element's value.
    pub fn to_bytes(self) -> [u8; 3] {
        let [_, a, b, c] = self.0.to_be_bytes();
        [a, b, c]
    }

    /// Returns the 24 bits, in units of 1/2^18 s.
    pub const fn ticks(self) -> u32 {
        self.0
    }

    /// Returns the time since `earlier`, modulo 64 s.
    pub fn since(self, earlier: Self) -> Duration {
        let ticks = self.0.wrapping_sub(earlier.0) & Self::MASK;
        // 24 bits times 10^9 fit 64 bits.
        Duration::from_nanos((u64::from(ticks) * 1_000_000_000) >> 18)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_and_wrap() {
        let half = AbsSendTime::from_duration(Duration::from_millis(1_500));
        assert_eq!(half.ticks(), 0x06_0000);
        assert_eq!(half.to_bytes(), [6, 0, 0]);
        assert_eq!(AbsSendTime::parse(&[6, 0, 0]), Some(half));
        assert_eq!(AbsSendTime::parse(&[6, 0]), None);
        assert_eq!(AbsSendTime::parse(&[6, 0, 0, 0]), None);
        assert_eq!(
            AbsSendTime::from_ntp((0x1234 << 32) | (1 << 31)).ticks(),
            0xd2_0000
        );
        let before = AbsSendTime::from_duration(Duration::from_secs(63));
        let after = AbsSendTime::from_duration(Duration::from_secs(65));
        assert_eq!(after.since(before), Duration::from_secs(2));
    }
}

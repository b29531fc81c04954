use std::time::Duration;

/// The bounds of a receiver's jitter buffer, set by the sender in steps of 10 ms up to 40.95 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayoutDelay {
    /// The least delay.
    pub min: Duration,
    /// The most delay.
    pub max: Duration,
}

impl PlayoutDelay {
    /// Parses an element's value. Returns `None` unless it has three bytes.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let [a, b, c] = *value.first_chunk::<3>()?;
        let both = u32::from_be_bytes([0, a, b, c]);
        let delay = |steps: u32| Duration::from_millis(u64::from(steps & 0xfff) * 10);
        (value.len() == 3).then_some(Self {
            min: delay(both >> 12),
            max: delay(both),
        })
    }

    /// Returns the element's value. Delays are rounded down to 10 ms and limited to 40.95 s.
    pub fn to_bytes(self) -> [u8; 3] {
        let steps = |delay: Duration| (delay.as_millis() / 10).min(0xfff) as u32;
        let [_, a, b, c] = ((steps(self.min) << 12) | steps(self.max)).to_be_bytes();
        [a, b, c]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_ten_milliseconds() {
        let delay = PlayoutDelay {
            min: Duration::from_millis(15),
            max: Duration::from_secs(99),
        };
        assert_eq!(delay.to_bytes(), [0x00, 0x1f, 0xff]);
        let parsed = PlayoutDelay::parse(&[0x00, 0x1f, 0xff]);
        let ends = (Duration::from_millis(10), Duration::from_millis(40_950));
        assert_eq!(parsed.map(|delay| (delay.min, delay.max)), Some(ends));
        assert_eq!(PlayoutDelay::parse(&[0, 0]), None);
    }
}
